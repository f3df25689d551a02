// Requests as commands of curl and calls of fetch: run as they are, they send the same request, whatever its
// visitor has put into it.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { toCurl } from '../../src/inspector/text/curl.ts'
import { toFetch } from '../../src/inspector/text/fetch.ts'
import type { TextRequest } from '../../src/inspector/text/request.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { listen } from '../support/network/listen.ts'

interface Received {
  method: string | undefined
  path: string | undefined
  headers: Record<string, string>
  body: Buffer
}

async function startReceiver(t: Test) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const { rawHeaders } = request
      const headers: Record<string, string> = {}
      for (let index = 0; index < rawHeaders.length; index += 2)
        headers[rawHeaders[index]?.toLowerCase() ?? ''] = rawHeaders[index + 1] ?? ''
      received.push({ method: request.method, path: request.url, headers, body: Buffer.concat(chunks) })
      response.end()
    })
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}`, received }
}

const HOSTILE = [
  `'; touch owned; '`,
  '$(touch owned) `touch owned`',
  '%s\\047;touch owned',
  '"; process.exit(9); "',
  '@/etc/passwd',
  `\${globalThis.owned = 1}`,
  'caf\u00e9 \u009b31m',
]

const hostileRequests = (url: string): TextRequest[] =>
  HOSTILE.flatMap((text) => [
    {
      url,
      method: 'POST',
      path: `/{a,b}[1-2]/../x?q=${encodeURI(text)}`,
      headers: [
        { name: 'X-Hostile', value: text },
        { name: 'X-Empty', value: '' },
        { name: '-X-Hyphen', value: text },
        { name: 'Host', value: 'not-sent.example' },
        { name: 'Content-Length', value: '1' },
      ],
      body: Buffer.from(`${text}\n\n`),
    },
    { url, method: 'PUT', path: '/', headers: [], body: Buffer.from(`\0\x1b[201~${text}\xff`, 'latin1') },
  ])

/** `program` runs the text in an empty folder. */
async function assertSent(
  t: Test,
  format: typeof toCurl,
  run: (folder: string, text: string) => Promise<unknown>,
) {
  const { url, received } = await startReceiver(t)
  const folder = createFolder(t)
  for (const request of hostileRequests(url)) {
    received.length = 0
    await run(folder, format(request))
    const [sent] = received
    assert.equal(sent?.method, request.method)
    assert.ok(sent.body.equals(request.body), String(sent.body))
    // fetch normalizes paths as browsers do.
    if (format === toCurl) assert.equal(sent.path, request.path)
    for (const { name, value } of request.headers.slice(0, 3))
      assert.equal(sent.headers[name.toLowerCase()], value)
    assert.notEqual(sent.headers.host, 'not-sent.example')
  }
  assert.ok(!existsSync(join(folder, 'owned')))
}

const hasCurl = () => {
  try {
    execFileSync('curl', ['--version'])
    return true
  } catch {
    return false
  }
}

/** Rejects if the program fails. */
const runProgram = promisify(execFile)

test('a command of curl sends the same request, and nothing of it is run', { skip: !hasCurl() }, (t) =>
  assertSent(t, toCurl, (cwd, text) => runProgram('sh', ['-c', `${text} --silent`], { cwd })),
)

test('a call of fetch sends the same request, and nothing of it is run', (t) =>
  assertSent(t, toFetch, (cwd, text) => {
    const script = `${text};globalThis.owned && process.exit(8)`
    return runProgram(process.execPath, ['--input-type=module', '--eval', script], { cwd })
  }))

test('the texts have no characters that a terminal acts on', () => {
  for (const request of hostileRequests('http://x'))
    for (const text of [toCurl(request), toFetch(request)]) assert.match(text, /^(?:[\n]|\P{C})*$/u)
})
