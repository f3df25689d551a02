// The log: complete when the process ends, without secrets, and bounded while standard error is not read.
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createDatabase } from '../support/databases/create.ts'
import { collectText } from '../support/network/collect.ts'
import { root } from '../support/processes/process.ts'

const MIB = 1024 * 1024
const BUFFER_BYTES_MAX = 4 * MIB
/** The buffers of the pipe and of both streams. */
const PIPE_BYTES_MAX = MIB

function startLogging(t: TestContext, script: string, stderr: 'pipe' | number = 'pipe') {
  const imports = `import { createLog, flushLog } from '${root}src/lib/log.ts'`
  const source = `${imports}\nconst log = createLog('info')\n${script}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', stderr],
  })
  atEnd(t, () => child.kill('SIGKILL'))
  return child as ChildProcessWithoutNullStreams
}

async function runScript(t: TestContext, script: string): Promise<string[]> {
  const child = startLogging(t, script)
  child.stderr.setEncoding('utf8')
  const text = collectText(child.stderr)
  await once(child, 'close')
  return text().trimEnd().split('\n')
}

// Fewer lines than a batch for processes that do not flush: a batch that is being written at the end may be
// lost, or written after later lines.
for (const [ending, count, script] of [
  ['ends by itself', 1000, ''],
  ['flushes and is killed', 1000, "await flushLog(log); process.kill(process.pid, 'SIGKILL')"],
  ['flushes and calls process.exit', 1000, 'await flushLog(log); process.exit()'],
  ['calls process.exit', 100, 'process.exit()'],
  ['crashes', 100, "setTimeout(() => { throw new Error('crash') })"],
  ['crashes by an unhandled rejection', 100, "Promise.reject(new Error('crash'))"],
] as const)
  test(`a process that ${ending} has written its whole log, in order`, async (t) => {
    const lines = await runScript(t, `for (let n = 0; n < ${count}; n++) log.info({ n }, 'line')\n${script}`)
    const numbers = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).n)
    assert.deepEqual(
      numbers,
      Array.from({ length: count }, (_, n) => n),
    )
  })

test('a line is written without further lines or an exit', async (t) => {
  const child = startLogging(t, "log.info('first'); setInterval(() => {}, 1000)")
  const [chunk] = await once(child.stderr, 'data')
  assert.equal(JSON.parse(String(chunk)).msg, 'first')
})

test('the random part of a secret is masked, in any field and in errors', async (t) => {
  const lines = await runScript(
    t,
    `log.info({ key: 'adit_0123456789abcdef', code: 'adit_device_0123456789abcdef' }, 'with adit_edge_0123456789abcdef')
     log.error({ err: new Error('about adit_0123456789abcdef') }, 'failed')`,
  )
  assert.equal(lines.length, 2)
  assert.ok(lines.every((line) => !line.includes('0123456789')))
  assert.match(
    lines[0] as string,
    /"key":"adit_\*\*\*","code":"adit_device_\*\*\*".*"msg":"with adit_edge_\*\*\*"/,
  )
  assert.match(lines[1] as string, /about adit_\*\*\*/)
})

test('while standard error is not read, lines past 4 MiB are dropped', async (t) => {
  const child = startLogging(
    t,
    `for (let n = 0; n < 20_000; n++) log.info({ text: 'x'.repeat(1000) }, 'flood')
     process.stdout.write('done')
     process.stdin.once('data', async () => { log.info('resumed'); await flushLog(log); process.exit() })`,
  )
  await once(child.stdout, 'data')
  let text = ''
  let isRequested = false
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk) => {
    text += chunk
    // By then the buffer has space again.
    if (isRequested || text.length <= BUFFER_BYTES_MAX / 2) return
    isRequested = true
    child.stdin.write('\n')
  })
  await once(child, 'close')
  const lines = text.trimEnd().split('\n')
  assert.ok(text.length <= BUFFER_BYTES_MAX + PIPE_BYTES_MAX, `${text.length} bytes`)
  assert.ok(text.length > BUFFER_BYTES_MAX / 2)
  for (const line of lines) JSON.parse(line)
  assert.equal(JSON.parse(lines.at(-1) as string).msg, 'resumed')
  assert.ok(
    lines.some((line) => JSON.parse(line).dropped > 0),
    'the log says that lines are missing',
  )
})

const hasFullDevice = existsSync('/dev/full')

for (const [ending, script] of [
  ['ends by itself', ''],
  ['crashes', "setTimeout(() => { throw new Error('crash') })"],
  ['continues for a while', 'setTimeout(() => {}, 300)'],
] as const)
  test(`a process whose log cannot be written, and that ${ending}, ends as usual`, async (t) => {
    if (!hasFullDevice) return t.skip('no /dev/full')
    const child = startLogging(t, `log.info('line')\n${script}`, openSync('/dev/full', 'w'))
    const [code, signal] = await once(child, 'exit', { signal: AbortSignal.timeout(20_000) })
    assert.deepEqual([code, signal], [ending === 'crashes' ? 1 : 0, null])
  })

test('a server whose log cannot be written serves requests, and stops on SIGTERM', async (t) => {
  if (!hasFullDevice) return t.skip('no /dev/full')
  const env = { ...process.env, ADIT_PORT: '0', ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const stdio: StdioOptions = ['ignore', 'pipe', openSync('/dev/full', 'w')]
  const child = spawn(process.execPath, [`${root}bin/adit.js`, 'serve', '--json'], { env, stdio })
  atEnd(t, () => child.kill('SIGKILL'))
  const [chunk] = await once(child.stdout as Readable, 'data')
  const { url } = JSON.parse(String(chunk))
  for (let round = 0; round < 5; round++) {
    assert.equal((await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5_000) })).status, 200)
    // Longer than a batch waits to be written.
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  child.kill('SIGTERM')
  await once(child, 'exit', { signal: AbortSignal.timeout(20_000) })
})
