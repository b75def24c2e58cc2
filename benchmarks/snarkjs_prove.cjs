// SPDX-License-Identifier: Apache-2.0
// Times snarkjs in one warm process: node snarkjs_prove.cjs NODE_MODULES KEY WTNS RUNS PROOF PUBLIC; prints seconds as JSON.
const [modules, key, witness, runs, proofFile, publicFile] = process.argv.slice(2);
const fs = require("fs");
const { groth16 } = require(`${modules}/snarkjs`);

(async () => {
  const seconds = [];
  for (let i = 0; i < Number(runs); i++) {
    const start = process.hrtime.bigint();
    const { proof, publicSignals } = await groth16.prove(key, witness);
    seconds.push(Number(process.hrtime.bigint() - start) / 1e9);
    fs.writeFileSync(proofFile, JSON.stringify(proof));
    fs.writeFileSync(publicFile, JSON.stringify(publicSignals));
  }
  console.log(JSON.stringify({ load: 0, prove: seconds }));
  process.exit(0);
})();
