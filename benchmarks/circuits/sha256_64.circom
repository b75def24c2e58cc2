// SPDX-License-Identifier: Apache-2.0
// SHA-256 of 64 bytes, the digest public as two 128-bit numbers: a witness that is nearly all bits.
pragma circom 2.0.0;

include "circomlib/circuits/sha256/sha256.circom";
include "circomlib/circuits/bitify.circom";

template Digest(bytes) {
    signal input message[bytes];
    signal output high;
    signal output low;
    component bits[bytes];
    component sha = Sha256(8 * bytes);
    component numbers[2];

    for (var i = 0; i < bytes; i++) {
        bits[i] = Num2Bits(8);
        bits[i].in <== message[i];
        for (var j = 0; j < 8; j++) sha.in[8 * i + j] <== bits[i].out[7 - j];
    }
    for (var k = 0; k < 2; k++) {
        numbers[k] = Bits2Num(128);
        for (var i = 0; i < 128; i++) numbers[k].in[i] <== sha.out[128 * k + 127 - i];
    }
    high <== numbers[0].out;
    low <== numbers[1].out;
}

component main = Digest(64);
