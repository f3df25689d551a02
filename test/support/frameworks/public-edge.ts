// A control plane and an edge with tunnels under a domain that is not localhost, which browsers reach by
// plain HTTP, and by HTTPS through Caddy. Shared by the files of test/matrix.
import { after } from 'node:test'
import type { Page } from 'playwright-core'
import { hasBrowser, openBrowser } from '../browser.ts'
import type { Test } from '../cleanup.ts'
import { newKey, openTunnel, startPlane, startTunnelEdge } from '../edges/tunnels.ts'
import { freePort } from '../processes/ports.ts'
import { hasCaddy, startCaddy } from '../proxies/caddy.ts'

const DOMAIN = 'tunnels.example.test'
export const browserMissing = hasBrowser
  ? undefined
  : 'Chromium is not installed here (apt-get install chromium)'

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
      tunnel.child.kill('SIGKILL')
      await tunnel.ended
      tunnel = await open()
    },
  }
}

/** A new page of a new visitor, who accepts the certificates of Caddy's own CA. */
export async function openPage(t: Test): Promise<Page> {
  const browser = await openBrowser(t)
  const context = await browser?.newContext({ ignoreHTTPSErrors: true })
  if (!context) throw new Error(browserMissing)
  context.setDefaultTimeout(30_000)
  return context.newPage()
}
