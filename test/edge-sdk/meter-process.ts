// An edge process for the tests of the meter, to be killed. Each line of standard input is a number of bytes
// to count; the total so far is printed to standard output.
import { createInterface } from 'node:readline'
import { createControlPlane, startMeter } from '../../src/edge-sdk/index.ts'

const [url = '', credential = '', folder = ''] = process.argv.slice(2)
const meter = await startMeter(createControlPlane({ url, credential }), { folder, reportEveryMs: 200 })
let counted = 0
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'stop') break
  meter.transferred('acme', { requests: 1, bytesIn: Number(line) })
  counted += Number(line)
  process.stdout.write(`${counted}\n`)
}
await meter.stop()
process.exit(0)
