// A control plane and an edge with tunnels under a domain that is not localhost, which browsers reach by
// plain HTTP, and by HTTPS through Caddy. Shared by the files of test/matrix.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Page } from 'playwright-core'
import { hasBrowser, openBrowser } from '../browser.ts'
import type { Test } from '../cleanup.ts'
import { fetchHost, newKey, openTunnel, startPlane, startTunnelEdge } from '../edges/tunnels.ts'
import { freePort } from '../processes/ports.ts'
import { startProcess } from '../processes/process.ts'
import { hasCaddy, startCaddy } from '../proxies/caddy.ts'
import { until } from '../until.ts'

const DOMAIN = 'tunnels.example.test'
export const browserMissing = hasBrowser
  ? undefined
  : 'Chromium is not installed here (apt-get install chromium)'

/** Next compiles a page when it is first requested. */
const PAGE_TIMEOUT_MS = 90_000

type Scheme = 'http' | 'https'
const schemes: readonly Scheme[] = hasCaddy ? ['http', 'https'] : ['http']
export const REWRITE = ['--host-header', 'rewrite']

async function start() {
  const t: Test = { after }
  const plane = await startPlane(t, ['acme'], { ADIT_TUNNEL_DOMAIN: DOMAIN })
  const [key, httpPort, httpsPort] = await Promise.all([newKey(plane, 'acme'), freePort(), freePort()])
  const http = await startTunnelEdge(t, { plane })
  const https = await startTunnelEdge(t, { plane, env: { ADIT_EDGE_PUBLIC: `https:${httpsPort}` } })
  if (hasCaddy) await startCaddy(t, { httpPort, httpsPort }, { EDGE: `127.0.0.1:${https.port}` })
  return { key, edges: { http, https } }
}

// When the file is loaded: what a test starts would end with it.
const started = hasBrowser ? await start() : undefined
let tunnels = 0

export interface Site {
  scheme: Scheme
  url: string
  /** What its tunnel client has printed. */
  output(): string
  /** Ends the tunnel client, and opens the tunnel again under its name. */
  reopen(): Promise<void>
}

/** Tunnels to a port under names of their own, one for each scheme. */
export const openSites = (t: Test, port: number, flags: string[] = []): Promise<Site[]> =>
  Promise.all(schemes.map((scheme) => openSite(t, scheme, port, flags)))

async function openSite(t: Test, scheme: Scheme, port: number, flags: string[]): Promise<Site> {
  if (!started) throw new Error(browserMissing)
  const { edges, key } = started
  tunnels += 1
  const name = `app-${tunnels}`
  let output = ''
  const open = async () => {
    const tunnel = await openTunnel(t, { edge: edges[scheme], key, port, name, flags })
    for (const stream of [tunnel.child.stdout, tunnel.child.stderr])
      stream?.on('data', (chunk) => {
        output += chunk
      })
    return tunnel
  }
  let tunnel = await open()
  return {
    scheme,
    url: `${tunnel.url}/`,
    output: () => output,
    async reopen() {
      await tunnel.stop('SIGKILL')
      tunnel = await open()
    },
  }
}

const adviceOn = (framework: string) =>
  `${framework} at http://localhost:\\d+ rejects the host of the tunnel\\. .*--host-header rewrite, or add `

/** The tunnel client of the site says what to do about the rejected host: one event. */
export async function assertAdvice({ output }: Site, framework: string): Promise<void> {
  const events = () => output().match(/^\{"event":"problem".*\}$/gm) ?? []
  await until(`advice about ${framework}`, () => events().length > 0)
  const [{ code, message }, ...others] = events().map((event) => JSON.parse(event))
  assert.match(message, new RegExp(`^${adviceOn(framework)}`))
  assert.deepEqual([code, others], ['host_rejected', []])
}

/** Without --json, it is a line. `path` and `headers` are those of a request that is rejected. */
export async function assertAdviceLine(
  t: Test,
  port: number,
  framework: string,
  request: Parameters<typeof fetchHost>[2] = {},
): Promise<void> {
  if (!started) throw new Error(browserMissing)
  const { edges, key } = started
  const args = ['tunnel', String(port), '--edge', edges.http.url]
  const { child, waitFor } = startProcess(t, args, { ADIT_API_KEY: key })
  const [url] = await waitFor(/^http:.*$/m)
  await fetchHost(edges.http, new URL(url).hostname, request)
  await waitFor(new RegExp(`^! ${adviceOn(framework)}`, 'm'), 'stderr')
  child.kill('SIGKILL')
}

/** A new page of a new visitor, who accepts the certificates of Caddy's own CA. */
export async function openPage(t: Test): Promise<Page> {
  const browser = await openBrowser(t)
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  context.setDefaultTimeout(PAGE_TIMEOUT_MS)
  return context.newPage()
}
