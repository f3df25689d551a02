// `npm run dev`: the server, restarted when a source changes, and the dashboard with hot reload, at one
// address. Vite serves the dashboard and passes other requests to the server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createServer } from 'vite'
import { awaitShutdown } from '../src/cli/server/shutdown.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const port = process.env.ADIT_PORT ?? '8080'
const MODULES = /^\/(@|src\/|node_modules\/)/
/** Paths that a browser can open and that are not pages of the dashboard. */
const SERVER_PAGES = /^\/(docs|api|dashboard\/api)\b/

const isDashboard = (path: string, accept = '') =>
  MODULES.test(path) || (accept.includes('text/html') && !SERVER_PAGES.test(path))

const stopped = awaitShutdown(0).requested
const dashboard = await createServer({
  configFile: `${root}web/vite.config.ts`,
  server: {
    proxy: {
      '/': {
        target: `http://127.0.0.1:${port}`,
        bypass: ({ url = '/', headers }) => (isDashboard(url, headers.accept) ? url : undefined),
      },
    },
  },
})
await dashboard.listen()
const { origin } = new URL(dashboard.resolvedUrls?.local[0] ?? '')
const args = ['--watch-path=src', '--watch-preserve-output', 'bin/adit.js', 'serve']
const server = spawn(process.execPath, args, {
  cwd: root,
  // The server prints its links with this address, and accepts writes of the dashboard from it.
  env: { ...process.env, ADIT_PORT: port, ADIT_BASE_URL: origin },
  stdio: 'inherit',
})
const exited = once(server, 'exit')
await Promise.race([stopped, exited])
server.kill()
await Promise.all([exited, dashboard.close()])
