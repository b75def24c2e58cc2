// SPDX-License-Identifier: Apache-2.0
pragma circom 2.0.0;
// Field-agnostic Merkle inclusion: MiMC-like x^5 Feistel-free permutation with constants c_i = (i+1)^3+7 (toy: NOT a secure hash)
template ToyHash(rounds) {
    signal input l; signal input r; signal output out;
    signal t[rounds+1]; signal x2[rounds]; signal x4[rounds];
    t[0] <== l;
    for (var i=0;i<rounds;i++) {
        var c = (i+1)*(i+1)*(i+1)+7;
        x2[i] <== (t[i]+r+c)*(t[i]+r+c);
        x4[i] <== x2[i]*x2[i];
        t[i+1] <== x4[i]*(t[i]+r+c);
    }
    out <== t[rounds]+l+r;
}
template MerkleInclusion(n) {
    signal input leaf; signal input pathElements[n]; signal input sel[n];
    signal output root;
    component h[n]; signal cur[n+1]; signal d[n]; signal L[n]; signal R[n];
    cur[0] <== leaf;
    for (var i=0;i<n;i++) {
        sel[i]*(sel[i]-1) === 0;
        d[i] <== sel[i]*(pathElements[i]-cur[i]);
        L[i] <== cur[i]+d[i]; R[i] <== pathElements[i]-d[i];
        h[i] = ToyHash(110); h[i].l <== L[i]; h[i].r <== R[i];
        cur[i+1] <== h[i].out;
    }
    root <== cur[n];
}
component main {public [leaf]} = MerkleInclusion(20);
