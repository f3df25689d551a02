// The log: complete when the process ends, without secrets, and bounded while standard error is not read.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { root } from '../support/process.ts'

const MIB = 1024 * 1024
const BUFFER_BYTES_MAX = 4 * MIB
/** The buffers of the pipe and of both streams. */
const PIPE_BYTES_MAX = MIB

function startLogging(t: TestContext, script: string) {
  const imports = `import { createLog, flushLog } from '${root}src/log.ts'`
  const source = `${imports}\nconst log = createLog('info')\n${script}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  atEnd(t, () => child.kill('SIGKILL'))
  return child
}

async function linesOf(t: TestContext, script: string): Promise<string[]> {
  const child = startLogging(t, script)
  child.stderr.setEncoding('utf8')
  let text = ''
  child.stderr.on('data', (chunk) => {
    text += chunk
  })
  await once(child, 'close')
  return text.trimEnd().split('\n')
}

for (const [ending, script] of [
  ['ends by itself', ''],
  ['calls process.exit', 'process.exit()'],
  ['flushes and is killed', "await flushLog(log); process.kill(process.pid, 'SIGKILL')"],
  ['crashes', "setTimeout(() => { throw new Error('crash') })"],
  ['crashes by an unhandled rejection', "Promise.reject(new Error('crash'))"],
] as const)
  test(`a process that ${ending} has written its whole log, in order`, async (t) => {
    const lines = await linesOf(t, `for (let n = 0; n < 1000; n++) log.info({ n }, 'line')\n${script}`)
    const numbers = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).n)
    assert.deepEqual(
      numbers,
      Array.from({ length: 1000 }, (_, n) => n),
    )
  })

test('a line is written without further lines or an exit', async (t) => {
  const child = startLogging(t, "log.info('first'); setInterval(() => {}, 1000)")
  const [chunk] = await once(child.stderr, 'data')
  assert.equal(JSON.parse(String(chunk)).msg, 'first')
})

test('the random part of a secret is masked, in any field and in errors', async (t) => {
  const lines = await linesOf(
    t,
    `log.info({ key: 'adit_0123456789abcdef' }, 'with adit_edge_0123456789abcdef')
     log.error({ err: new Error('about adit_0123456789abcdef') }, 'failed')`,
  )
  assert.equal(lines.length, 2)
  assert.ok(lines.every((line) => !line.includes('0123456789')))
  assert.match(lines[0] as string, /"key":"adit_\*\*\*".*"msg":"with adit_edge_\*\*\*"/)
  assert.match(lines[1] as string, /about adit_\*\*\*/)
})

test('while standard error is not read, lines past 4 MiB are dropped', async (t) => {
  const child = startLogging(
    t,
    `for (let n = 0; n < 20_000; n++) log.info({ text: 'x'.repeat(1000) }, 'flood')
     process.stdout.write('done')
     process.stdin.once('data', () => { log.info('resumed'); process.exit() })`,
  )
  await once(child.stdout, 'data')
  let text = ''
  let isRequested = false
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk) => {
    text += chunk
    // By then the buffer has space again.
    if (!isRequested && text.length > BUFFER_BYTES_MAX / 2) isRequested = child.stdin.write('\n') || true
  })
  await once(child, 'close')
  const lines = text.trimEnd().split('\n')
  assert.ok(text.length <= BUFFER_BYTES_MAX + PIPE_BYTES_MAX, `${text.length} bytes`)
  assert.ok(text.length > BUFFER_BYTES_MAX / 2)
  for (const line of lines) JSON.parse(line)
  assert.equal(JSON.parse(lines.at(-1) as string).msg, 'resumed')
})
