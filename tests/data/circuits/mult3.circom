// SPDX-License-Identifier: Apache-2.0
pragma circom 2.0.0;
// out = a*b*c*d ; 3 multiplication constraints, 1 public output, 1 public input
template Mult3() {
    signal input a; signal input b; signal input c; signal input d;
    signal output out;
    signal ab; signal abc;
    ab <== a*b;
    abc <== ab*c;
    out <== abc*d;
}
component main {public [d]} = Mult3();
