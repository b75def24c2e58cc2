// SPDX-License-Identifier: Apache-2.0
// A dense witness: a long x^5 chain, three constraints a round, almost every wire a full-size field element.
pragma circom 2.0.0;

template Chain(rounds) {
    signal input left;
    signal input right;
    signal output out;
    signal state[rounds + 1];
    signal square[rounds];
    signal fourth[rounds];

    state[0] <== left;
    for (var i = 0; i < rounds; i++) {
        var constant = (i + 1) * (i + 1) * (i + 1) + 7;
        square[i] <== (state[i] + right + constant) * (state[i] + right + constant);
        fourth[i] <== square[i] * square[i];
        state[i + 1] <== fourth[i] * (state[i] + right + constant);
    }
    out <== state[rounds] + left + right;
}

component main = Chain(43600);
