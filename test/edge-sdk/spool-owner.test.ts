// The folder of an edge's spool: it belongs to one running process, and each file in it to one credential.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { createControlPlane, startMeter } from '../../src/edge-sdk/index.ts'
import { addEdge, serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { freePort } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const inFolder = (folder: string, pattern: RegExp) => readdirSync(folder).filter((name) => pattern.test(name))
const spoolFiles = (folder: string) => inFolder(folder, /^usage-.*\.json$/)
const lockFiles = (folder: string) => inFolder(folder, /\.lock$/)

/** A control plane with two edges, and one folder. */
async function setUp(t: Test) {
  const server = await serve(t, { engine: 'sqlite' })
  const [first, second] = [await addEdge(server, 'one'), await addEdge(server, 'two')]
  const folder = createFolder(t)
  const start = async (credential: string, url = server.url) => {
    const notices: string[] = []
    const meter = await startMeter(createControlPlane({ url, credential }), {
      folder,
      reportEveryMs: 100,
      onNotice: (line) => notices.push(line),
    })
    atEnd(t, meter.stop)
    return { ...meter, notices }
  }
  const totalBytes = async () => (await server.call('GET', '/usage?days=2')).json.totalBytes
  return { first: first.token, second: second.token, folder, start, totalBytes }
}

/** A process that runs a meter; its control plane cannot be reached. */
async function startMeterProcess(t: Test, folder: string) {
  const script = join(root, 'test/edge-sdk/meter-process.ts')
  const url = `http://127.0.0.1:${await freePort()}`
  const child = spawn(process.execPath, [script, url, 'adit_edge_x', folder], { stdio: 'pipe' })
  atEnd(t, () => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.on('data', (text) => {
    stderr += text
  })
  const exited = once(child, 'exit')
  return {
    pid: child.pid as number,
    exited,
    stderr: () => stderr,
    /** Resolves once the meter runs: it has counted, or its process has exited. */
    async started() {
      child.stdin.write('1\n')
      await Promise.race([once(child.stdout, 'data'), exited])
      return child.exitCode === null
    },
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    stop: () => child.stdin.write('stop\n'),
  }
}

test('usage that one credential left is not reported with another', async (t) => {
  const { first, second, folder, start, totalBytes } = await setUp(t)
  const unreachable = await start(first, `http://127.0.0.1:${await freePort()}`)
  unreachable.transferred('acme', { requests: 1, bytesIn: 3 })
  await unreachable.stop()
  const [name = ''] = spoolFiles(folder)
  const content = readFileSync(join(folder, name), 'utf8')

  const other = await start(second)
  assert.deepEqual(other.notices, [
    `Usage that was counted with another edge credential is not reported: ${join(folder, name.slice(0, 22))}-*.json. ` +
      'Start the edge once with that credential, or delete the files if it was revoked.',
  ])
  other.transferred('acme', { bytesIn: 40 })
  await until('its own usage arrives', async () => (await totalBytes()) === 40)
  await other.stop()
  assert.equal(await totalBytes(), 40)
  assert.equal(readFileSync(join(folder, name), 'utf8'), content, 'the file is untouched')

  const again = await start(first)
  await until('the rest arrives', async () => (await totalBytes()) === 43)
  await until('the spool is empty', () => spoolFiles(folder).length === 0)
  assert.deepEqual(again.notices, [])
})

test('the names of spool files do not reveal the credential', async (t) => {
  const { first, folder, start } = await setUp(t)
  const meter = await start(first, `http://127.0.0.1:${await freePort()}`)
  meter.transferred('acme', { bytesIn: 1 })
  await until('it is spooled', () => spoolFiles(folder).length === 1)
  for (const name of readdirSync(folder)) assert.ok(!name.includes(first.slice(10, 18)), name)
})

test('a second process with the same folder fails to start, until the first one stops', async (t) => {
  const folder = createFolder(t)
  const first = await startMeterProcess(t, folder)
  assert.ok(await first.started())
  const second = await startMeterProcess(t, folder)
  assert.equal(await second.started(), false)
  assert.match(second.stderr(), new RegExp(`The folder ${folder} is in use by process ${first.pid}, `))
  first.stop()
  await first.exited
  assert.deepEqual(lockFiles(folder), [], 'released on stop')
  assert.ok(await (await startMeterProcess(t, folder)).started())
})

test('a folder whose process was killed can be used at once', async (t) => {
  const folder = createFolder(t)
  const killed = await startMeterProcess(t, folder)
  assert.ok(await killed.started())
  killed.kill('SIGKILL')
  await killed.exited
  assert.equal(lockFiles(folder).length, 1)
  assert.ok(await (await startMeterProcess(t, folder)).started())
  assert.equal(lockFiles(folder).length, 1, 'the stale lock is deleted')
})

test('a second meter of the same process fails to start, and the first keeps its lock', async (t) => {
  const { first, folder, start } = await setUp(t)
  const meter = await start(first)
  await assert.rejects(start(first), new RegExp(`${folder} is in use by process ${process.pid}, `))
  assert.equal(lockFiles(folder).length, 1)
  await meter.stop()
  const next = await start(first)
  await meter.stop()
  assert.equal(lockFiles(folder).length, 1, 'stopping twice does not release the lock of the next meter')
  await next.stop()
})

test('a lock is stale if its process id belongs to another process by now', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const { first, folder, start } = await setUp(t)
  // Earlier processes with the ids of this one (as in a container, where it is always 1) and of its parent.
  const stale = [process.pid, process.ppid].map((pid) => join(folder, `process-${pid}-1-earlier-boot.lock`))
  for (const path of stale) writeFileSync(path, '')
  await start(first)
  for (const path of stale) assert.ok(!existsSync(path), basename(path))
})
