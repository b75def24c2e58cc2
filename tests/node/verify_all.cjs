// SPDX-License-Identifier: Apache-2.0
// Verifies many proofs in one process. usage: node verify_all.cjs LIST; LIST is a JSON file [{vkey, public, proof}, ...].
// Prints one JSON list of true and false.
const fs = require('fs');
const snarkjs = require('snarkjs');

async function main() {
  const verdicts = [];
  for (const { vkey, public, proof } of JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))) {
    verdicts.push(await snarkjs.groth16.verify(vkey, public, proof));
  }
  console.log(JSON.stringify(verdicts));
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
