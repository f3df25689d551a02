// The file server of Python, uvicorn and Django behind a tunnel.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { startApp } from '../support/frameworks/apps.ts'
import { assertEventStream } from '../support/frameworks/event-stream.ts'
import { assertForms } from '../support/frameworks/forms.ts'
import {
  assertAdvice,
  assertAdviceLine,
  browserMissing,
  openPage,
  openSites,
  REWRITE,
} from '../support/frameworks/public-edge.ts'

/** The one of the system, for which Debian has packages. */
const PYTHON = '/usr/bin/python3'
const imports = (module: string) => spawnSync(PYTHON, ['-c', `import ${module}`]).status === 0
const pythonMissing = imports('http.server') ? browserMissing : 'Python is not installed here'
const djangoMissing = imports('django')
  ? browserMissing
  : 'Django is not installed here (apt-get install python3-django)'

const uvicornMissing = imports('uvicorn, wsproto')
  ? browserMissing
  : 'uvicorn is not installed here (apt-get install python3-uvicorn python3-wsproto)'

const django = (env: Record<string, string> = {}) => ({
  command: (port: string) => [PYTHON, 'site.py', 'runserver', port, '--noreload'],
  env,
})

test('http.server serves files and redirects to folders through a tunnel', {
  skip: pythonMissing,
}, async (t) => {
  const command = (port: string) => [PYTHON, '-m', 'http.server', '--bind', '127.0.0.1', port]
  const sites = await openSites(t, (await startApp(t, 'webpack', { command })).port)
  const page = await openPage(t)
  for (const site of sites) {
    const response = await page.goto(`${site.url}src`)
    assert.equal(response?.url(), `${site.url}src/`)
    await page.getByRole('link', { name: 'index.js' }).waitFor()
  }
})

test('uvicorn gets uploads, streams and WebSockets through a tunnel right', {
  skip: uvicornMissing,
}, async (t) => {
  const command = (port: string) => [PYTHON, '-m', 'uvicorn', 'app:app', '--port', port]
  const sites = await openSites(t, (await startApp(t, 'asgi', { command })).port)
  const page = await openPage(t)
  for (const site of sites) {
    await page.goto(site.url)
    const uploaded = `fetch('/', { method: 'PUT', body: new Uint8Array(3_000_000) }).then((response) => response.text())`
    assert.equal(await page.evaluate(uploaded), '3000000')
    const echoed = `new Promise((resolve, reject) => {
      const socket = new WebSocket(location.href.replace('http', 'ws'))
      socket.onopen = () => socket.send('hello')
      socket.onmessage = ({ data }) => resolve(data)
      socket.onerror = reject
    })`
    assert.equal(await page.evaluate(echoed), 'echo hello')
    await assertEventStream(page)
  }
})

test('Django rejects the host of a tunnel, and accepts forms with --host-header rewrite', {
  skip: djangoMissing,
}, async (t) => {
  const { port } = await startApp(t, 'django', django())
  const page = await openPage(t)
  for (const site of await openSites(t, port)) {
    assert.equal((await page.goto(site.url))?.status(), 400)
    await page
      .getByText(/You may need to add .* to ALLOWED_HOSTS/)
      .first()
      .waitFor()
    await assertAdvice(site, 'Django')
  }
  await assertAdviceLine(t, port, 'Django')
  await assertForms(t, await openSites(t, port, REWRITE))
})

test('Django that allows the host accepts forms through a tunnel', { skip: djangoMissing }, async (t) => {
  await assertForms(t, await openSites(t, (await startApp(t, 'django', django({ BEHIND_TUNNEL: '1' }))).port))
})
