// The target: a control plane, an edge and a tunnel client as processes, with one of every credential that an
// attacker may have.

import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import type { Test } from '../support/cleanup.ts'
import {
  type Edge,
  newKey,
  type OpenTunnel,
  openTunnel,
  type Plane,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'

/** Garbage is collected early, so that memory which stays is a leak. */
const HEAP_LIMIT = { NODE_OPTIONS: '--max-old-space-size=160' }

export interface Deployment {
  plane: Plane
  edge: Edge
  tunnel: OpenTunnel
  /** An API key, the credential of an edge, and the session cookie of an owner. */
  credentials: { key: string; edge: string; cookie: string }
}

export async function deploy(t: Test): Promise<Deployment> {
  const plane = await startPlane(t, ['acme', 'other'], HEAP_LIMIT)
  const key = await newKey(plane, 'acme')
  const edge = await startTunnelEdge(t, { plane, env: { ADIT_LOG_LEVEL: 'warn', ...HEAP_LIMIT } })
  const { port } = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key, port, name: 'app' })
  const credentials = {
    key: await newKey(plane, 'acme'),
    edge: await plane.admin('edge', 'create', 'hostile'),
    cookie: await signInOwner(plane),
  }
  return { plane, edge, tunnel, credentials }
}

async function signInOwner(plane: Plane): Promise<string> {
  const invited = await plane.admin(
    'user',
    'invite',
    'owner@example.com',
    '--workspace',
    'acme',
    '--role',
    'owner',
  )
  const link = /#([\w-]+)/.exec(invited)?.[1]
  const browser = openBrowser(plane.url)
  const { status, text } = await browser.post('/links/redeem', { link, name: 'Owner', password: PASSWORD })
  if (status !== 200) throw new Error(text)
  return [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}
