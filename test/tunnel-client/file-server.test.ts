// The file server of `adit tunnel --serve`, on real files and real sockets.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FileServer } from '../../src/tunnel-client/files/file-server.ts'
import { findAditData } from '../../src/tunnel-client/files/private-files.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { listen } from '../support/network/listen.ts'
import { sendRaw } from '../support/network/raw.ts'
import { until } from '../support/until.ts'

/** Only there a process can ask for the path of an open file. */
const onLinux = { skip: process.platform !== 'linux' }

interface Page {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

/** A folder whose parent has a secret, and a server of it. */
async function share(t: Test) {
  const outside = realpathSync(createFolder(t))
  const folder = join(outside, 'public')
  mkdirSync(folder)
  writeFileSync(join(outside, 'secret.txt'), 'SECRET')
  const files = new FileServer(folder)
  const port = await listen(
    t,
    createServer({ allowHalfOpen: true }, (socket) => files.serve(socket)),
  )
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<Page>((resolve, reject) => {
      const sent = httpRequest(
        { port, host: '127.0.0.1', path, method, headers, agent: false },
        (response) => {
          let body = ''
          response.setEncoding('latin1').on('data', (chunk) => {
            body += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          )
          response.on('error', reject)
        },
      )
      sent.on('error', reject)
      sent.end()
    })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  return { outside, folder, port, get, write, url: `http://127.0.0.1:${port}` }
}

test('files have a type, a length and validators, and HEAD has no body', async (t) => {
  const { get, write, folder } = await share(t)
  write('page.HTML', '<p>hello')
  write('data.unknown', 'x')
  write('empty.txt', '')
  const page = await get('/page.HTML?version=2')
  assert.deepEqual([page.status, page.body], [200, '<p>hello'])
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(page.headers['x-content-type-options'], 'nosniff')
  assert.equal(page.headers['content-length'], '8')
  assert.equal(page.headers['last-modified'], statSync(join(folder, 'page.HTML')).mtime.toUTCString())
  const head = await get('/page.HTML', {}, 'HEAD')
  assert.deepEqual([head.status, head.body, head.headers['content-length']], [200, '', '8'])
  assert.equal((await get('/data.unknown')).headers['content-type'], 'application/octet-stream')
  assert.deepEqual([(await get('/empty.txt')).status, (await get('/empty.txt')).body], [200, ''])
  const post = await get('/page.HTML', {}, 'POST')
  assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD'])
  assert.equal((await get('/none.txt')).status, 404)
  assert.equal((await get('/page.HTML/')).status, 404)
})

test('a version that the client has is 304, and one that changed is sent', async (t) => {
  const { get, write, folder } = await share(t)
  write('a.txt', 'first')
  const { headers } = await get('/a.txt')
  const { etag = '', 'last-modified': date = '' } = headers
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
    assert.equal((await get('/a.txt', { 'if-none-match': known })).status, 304, known)
  assert.equal((await get('/a.txt', { 'if-modified-since': date })).status, 304)
  assert.equal((await get('/a.txt', { 'if-modified-since': 'yesterday' })).status, 200)
  // If-None-Match takes precedence.
  assert.equal((await get('/a.txt', { 'if-none-match': '"other"', 'if-modified-since': date })).status, 200)
  write('a.txt', 'other')
  utimesSync(join(folder, 'a.txt'), 2_000_000_000, 2_000_000_000)
  assert.equal((await get('/a.txt', { 'if-none-match': etag })).body, 'other')
  assert.equal((await get('/a.txt', { 'if-modified-since': date })).body, 'other')
})

test('one range is sent; several, malformed and outdated ones are the whole file, and one outside is 416', async (t) => {
  const { get, write } = await share(t)
  write('a.txt', '0123456789')
  write('empty.txt', '')
  const { etag = '', 'last-modified': date = '' } = (await get('/a.txt')).headers
  for (const [range, body, contentRange] of [
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-2', '89', 'bytes 8-9/10'],
    ['bytes=-50', '0123456789', 'bytes 0-9/10'],
    ['bytes=9-999999999', '9', 'bytes 9-9/10'],
  ] as const) {
    const part = await get('/a.txt', { range })
    assert.deepEqual([part.status, part.body, part.headers['content-range']], [206, body, contentRange])
    assert.equal(part.headers['content-length'], String(body.length))
  }
  for (const range of ['bytes=10-', 'bytes=-0', 'bytes=99-100']) {
    const outside = await get('/a.txt', { range })
    assert.deepEqual([outside.status, outside.headers['content-range']], [416, 'bytes */10'], range)
  }
  assert.equal((await get('/empty.txt', { range: 'bytes=0-' })).status, 416)
  for (const range of ['bytes=0-1,3-4', 'bytes=3-1', 'bytes=-', 'lines=1-2', 'bytes=a-b', 'bytes=0x1-2'])
    assert.deepEqual([(await get('/a.txt', { range })).status, range], [200, range])
  assert.equal((await get('/a.txt', { range: 'bytes=0-3' }, 'HEAD')).status, 200)
  assert.equal((await get('/a.txt', { range: 'bytes=0-3', 'if-range': etag })).status, 206)
  assert.equal((await get('/a.txt', { range: 'bytes=0-3', 'if-range': date })).status, 206)
  assert.equal((await get('/a.txt', { range: 'bytes=0-3', 'if-range': '"other"' })).status, 200)
})

test('a folder is its index.html or an escaped list of its files, without private ones', async (t) => {
  const { get, write, folder, outside } = await share(t)
  mkdirSync(join(folder, 'sub'))
  write('sub/index.html', 'the index')
  write('<img src=x onerror=alert(1)>"\'&.txt', 'x')
  write('javascript:alert(1)', 'x')
  write('.env', 'SECRET')
  write('adit.db', 'SECRET')
  symlinkSync(join(outside, 'secret.txt'), join(folder, 'link.txt'))
  const page = await get('/')
  assert.equal(page.status, 200)
  assert.match(
    String(page.headers['content-security-policy']),
    /^default-src 'none'; style-src 'unsafe-inline'/,
  )
  const links = [...page.body.matchAll(/<a href="([^"]*)">/g)].map(([, link = '']) => link)
  assert.deepEqual(links.map(decodeURIComponent), [
    './sub/',
    './<img src=x onerror=alert(1)>"\'&.txt',
    './javascript:alert(1)',
  ])
  assert.ok(!page.body.includes('<img'), 'a name is not escaped')
  assert.equal((await get(`/${(links[1] as string).slice(2)}`)).body, 'x')
  const moved = await get('/sub')
  assert.deepEqual([moved.status, moved.headers.location], [301, '/sub/'])
  assert.equal((await get('/sub/')).body, 'the index')
  // Not a redirect to another host.
  mkdirSync(join(folder, 'evil.example'))
  assert.equal((await get('//evil.example')).headers.location, '/evil.example/')
  assert.equal((await get('/sub?page=2&next=//x?y')).headers.location, '/sub/?page=2&next=//x?y')
  assert.equal((await get('/sub/../', {}, 'HEAD')).status, 404)
})

test('no path leads out of the folder, to dot files or to data of Adit', async (t) => {
  const { get, write, folder, outside, url } = await share(t)
  mkdirSync(join(folder, '.git'))
  mkdirSync(join(folder, 'sub'))
  write('.git/config', 'SECRET')
  write('.env', 'SECRET')
  for (const name of [
    'adit.db',
    'adit.db-wal',
    'adit.db.secret',
    'own.db.secret',
    `usage-${'0'.repeat(16)}-a.json`,
  ])
    write(name, 'SECRET')
  symlinkSync(join(outside, 'secret.txt'), join(folder, 'out.txt'))
  symlinkSync('../../secret.txt', join(folder, 'sub/out.txt'))
  symlinkSync(outside, join(folder, 'parent'))
  symlinkSync('.env', join(folder, 'env.txt'))
  symlinkSync('adit.db', join(folder, 'database.txt'))
  const encoded = ['%2e%2e', '..', '%2E%2e', '.%2e', '..%2f', '..%5c', '..\\', '%c0%ae%c0%ae', '%252e%252e']
  const paths = [
    ...encoded.flatMap((up) => [`/${up}/secret.txt`, `/sub/${up}/${up}/secret.txt`, `/${up}secret.txt`]),
    ...['/out.txt', '/sub/out.txt', '/parent/secret.txt', '/parent/', '/env.txt', '/database.txt'],
    ...[
      '/.env',
      '/%2eenv',
      '/.git/config',
      '/.git/',
      '/sub/.%2e/.env',
      '/ADIT.DB',
      '/adit.db',
      '/adit.db-wal',
    ],
    ...['/adit.db.secret', '/own.db.secret', `/usage-${'0'.repeat(16)}-a.json`, '/x%00.txt', '/%', '/%ff'],
    ...[
      `${outside}/secret.txt`,
      `/${outside}/secret.txt`,
      '/sub%2f..%2f..%2fsecret.txt',
      `/${'a/'.repeat(3_000)}`,
    ],
  ]
  for (const path of paths) {
    const { status, body } = await get(path).catch((error) => ({ status: 404, body: String(error) }))
    assert.ok(status === 404 && !body.includes('SECRET'), `${path}: ${status} ${body}`)
  }
  for (const target of ['*', 'secret.txt', '../secret.txt', 'file:///etc/passwd', '\\..\\secret.txt']) {
    const raw = await sendRaw(url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.ok(raw.status >= 400 && raw.status < 500, `${target}: ${raw.status}`)
  }
})

test('links within the folder are followed; FIFOs and devices are not served, and block nothing', async (t) => {
  const { get, write, folder } = await share(t)
  write('real.txt', 'text')
  symlinkSync('real.txt', join(folder, 'link.txt'))
  symlinkSync('loop', join(folder, 'loop'))
  symlinkSync('/dev/zero', join(folder, 'zero'))
  execFileSync('mkfifo', [join(folder, 'fifo')])
  assert.equal((await get('/link.txt')).body, 'text')
  for (const path of ['/fifo', '/zero', '/loop']) assert.equal((await get(path)).status, 404, path)
  const { body } = await get('/')
  assert.deepEqual(
    [...body.matchAll(/<a href="\.\/([^"]*)">/g)].map(([, name]) => name),
    ['link.txt', 'real.txt'],
  )
})

test('a folder that becomes a link while it is read publishes nothing outside', onLinux, async (t) => {
  const { get, folder, outside } = await share(t)
  const [inside, link, name] = [join(outside, 'a'), join(outside, 'b'), join(folder, 'sub')]
  mkdirSync(inside)
  writeFileSync(join(inside, 'secret.txt'), 'public')
  symlinkSync(outside, link)
  let isDone = false
  const swap = async () => {
    while (!isDone)
      for (const one of [inside, link]) {
        renameSync(one, name)
        await sleep(2 * Math.random())
        renameSync(name, one)
      }
  }
  const swapping = swap()
  const bodies = new Set<string>()
  let rounds = 0
  await until('both were seen, and raced with', async () => {
    const pages = await Promise.all(Array.from({ length: 10 }, () => get('/sub/secret.txt')))
    for (const { body } of pages) bodies.add(body)
    rounds += 1
    return rounds > 100 && bodies.has('public') && bodies.has('Not found.\n')
  })
  isDone = true
  await swapping
  assert.ok(!bodies.has('SECRET'))
})

test('large files are streamed to a slow reader in bounded memory, and a shorter file ends the connection', async (t) => {
  const { folder, port, get } = await share(t)
  const file = join(folder, 'large.bin')
  writeFileSync(file, '')
  truncateSync(file, 2_000_000_000)
  const sent = httpRequest({ port, host: '127.0.0.1', path: '/large.bin', agent: false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  await once(response, 'readable')
  assert.ok(process.memoryUsage().rss < 1_000_000_000, 'the file is in memory')
  // Others are served meanwhile.
  assert.equal((await get('/large.bin', { range: 'bytes=-4' })).body, '\0\0\0\0')
  truncateSync(file, 0)
  response.resume()
  await assert.rejects(once(response, 'end'), { code: 'ECONNRESET' })
})

test('a folder with data of Adit, or in such a folder, is found out', async (t) => {
  const folder = realpathSync(createFolder(t))
  const find = (known: string[] = []) => findAditData(folder, known)
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  writeFileSync(join(folder, 'tokens.json'), JSON.stringify({ color: { red: '#f00' } }))
  assert.equal(await find(), undefined, 'design tokens')
  assert.equal(await find([join(folder, '../other'), join(folder, 'missing')]), undefined)
  assert.equal(await find([join(folder, 'a')]), join(folder, 'a'), 'inside')
  assert.equal(await find([folder]), folder, 'the same')
  assert.equal(await find([join(folder, '..')]), join(folder, '..'), 'around')
  symlinkSync(folder, join(realpathSync(createFolder(t)), 'link'))
  for (const name of ['adit.db', 'own.db.secret', `usage-${'a'.repeat(16)}-x.json`]) {
    writeFileSync(join(folder, 'a/b', name), '')
    assert.equal(await find(), join(folder, 'a/b', name))
    renameSync(join(folder, 'a/b', name), join(folder, 'a/b/harmless.txt'))
  }
  const token = { id: 'tok_a', hash: 'a'.repeat(64), workspace: 'acme' }
  writeFileSync(join(folder, 'a/tokens.json'), JSON.stringify({ tokens: [token] }))
  assert.equal(await find(), join(folder, 'a/tokens.json'))
})
