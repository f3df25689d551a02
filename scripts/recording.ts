// `npm run recording`: runs the quick start of the README on pseudo-terminals, and writes what they show as
// an animation, docs/images/quick-start.svg. All data is in a temporary folder.
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { folder, stopAll } from './demo/processes.ts'
import { startLocalServer } from './demo/traffic.ts'
import { animate, type Scene } from './recording/svg.ts'
import { openTerminal } from './recording/terminal.ts'

const OUTPUT = process.argv[2] ?? fileURLToPath(new URL('../docs/images/quick-start.svg', import.meta.url))
const PATHS = ['/', '/assets/app.css', '/assets/app.js', '/api/orders?page=2', '/favicon.ico']

const env = { HOME: folder, ADIT_LOG_LEVEL: 'warn' }

async function record(): Promise<Scene[]> {
  const server = openTerminal(['serve', '--edge'], { ...env, npm_lifecycle_event: 'start' })
  const [, key = ''] = await server.waitFor(/API key +(adit_\w+)/)
  const [, url = ''] = await server.waitFor(/Dashboard +(http\S+)/)
  await server.waitFor(/adit tunnel 3000.*\n/)

  const login = openTerminal(['login', url], env)
  await login.waitFor(/not shown\): $/)
  login.type(`${key}\n`)
  await login.waitFor(/current profile\.\n/)

  const port = await startLocalServer()
  const tunnel = openTerminal(['tunnel', String(port), '--name', 'my-app'], env)
  const [, host = '', edgePort = ''] = await tunnel.waitFor(/http:\/\/(my-app\.[\w.-]+):(\d+)/)
  for (const path of PATHS) {
    await send(host, Number(edgePort), path)
    await sleep(300)
  }
  await tunnel.waitFor(/favicon\.ico\n/)
  return [
    { command: 'npm ci && npm start', output: hideSecrets(server.output()), isOneAtATime: false },
    { command: `adit login ${url}`, output: login.output(), isOneAtATime: false },
    {
      command: 'adit tunnel 3000 --name my-app',
      output: tunnel.output().replaceAll(String(port), '3000'),
      isOneAtATime: true,
    },
  ]
}

/** They are of a database that is deleted, but scanners for leaked secrets would report them. */
const hideSecrets = (text: string) => text.replace(/(adit_\w{4}|link#[\w-]{4})[\w-]+/g, '$1…')

/** Connects to the edge directly, so that names under localhost need not resolve. */
const send = (host: string, port: number, path: string) =>
  new Promise<void>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host: `${host}:${port}` } }, (response) => {
      response.resume().once('end', resolve)
    })
      .once('error', reject)
      .end()
  })

try {
  writeFileSync(OUTPUT, animate(await record()))
} finally {
  await stopAll()
}
process.exit()
