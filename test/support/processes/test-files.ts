// Runs the test files in its arguments one after the other in this process. `node --test` cannot: it enables
// its async hooks before it loads without-async-hooks.ts.
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

/** Ends what hangs. */
const TIMEOUT_MS = 300_000

const events = run({ files: process.argv.slice(2), isolation: 'none', timeout: TIMEOUT_MS })
// Also for a hook that fails after the last test, which the summary does not count.
events.on('test:fail', () => {
  process.exitCode = 1
})
events.compose(spec).pipe(process.stdout)
