// A link that signs in to the dashboard. The demo creates the owner, and a small server on the same host sets
// the cookies of a session: browsers share cookies among the ports of a host.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const OWNER = { email: 'demo@example.com', name: 'Demo' }

/** `setupLink` is the invitation of the first owner; the link leads to `page`. */
export async function createSignInLink(
  controlPlaneUrl: string,
  setupLink: string,
  page: string,
): Promise<string> {
  const password = randomBytes(18).toString('base64url')
  const post = (path: string, body: object) =>
    fetch(`${controlPlaneUrl}/dashboard/api${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: controlPlaneUrl },
      body: JSON.stringify(body),
    })
  const used = await post('/links/redeem', { ...OWNER, link: new URL(setupLink).hash.slice(1), password })
  if (!used.ok) throw new Error(`The owner account cannot be created: ${await used.text()}`)
  // Another local user must not be signed in by guessing the port.
  const path = `/${randomBytes(9).toString('base64url')}`
  const server = createServer(async (request, response) => {
    if (request.url !== path) return response.writeHead(404).end()
    const signedIn = await post('/sign-in', { email: OWNER.email, password }).catch(() => undefined)
    if (!signedIn?.ok) return response.writeHead(502).end('The control plane did not respond.\n')
    response.setHeader('set-cookie', signedIn.headers.getSetCookie())
    response.writeHead(302, { location: controlPlaneUrl + page }).end()
  })
  server.listen(0, new URL(controlPlaneUrl).hostname)
  await once(server, 'listening')
  server.unref()
  return `http://${new URL(controlPlaneUrl).hostname}:${(server.address() as AddressInfo).port}${path}`
}
