// The official SDK's client signs in without a key, in a real browser, and calls a tool.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import {
  Client,
  type OAuthClientProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  type Transport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { button, openPageAs } from '../../pages/support/harness.ts'
import { createPublisher } from '../../support/accounts/client-documents.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { test } from '../../support/browser.ts'
import type { Test } from '../../support/cleanup.ts'
import { readRows } from '../../support/databases/rows.ts'
import { listen } from '../../support/network/listen.ts'

const CLIENT_NAME = 'SDK client'

/** What an application that uses the SDK implements. */
class Provider implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly clientMetadata
  clientMetadataUrl?: string
  authorizationUrl: URL | undefined
  #client: StoredOAuthClientInformation | undefined
  #tokens: StoredOAuthTokens | undefined
  #verifier = ''

  constructor(redirectUrl: string, clientMetadataUrl?: string) {
    this.redirectUrl = redirectUrl
    this.clientMetadata = { client_name: CLIENT_NAME, redirect_uris: [redirectUrl] }
    if (clientMetadataUrl) this.clientMetadataUrl = clientMetadataUrl
  }

  state = () => 'state of the SDK'
  clientInformation = () => this.#client
  saveClientInformation = (client: StoredOAuthClientInformation) => {
    this.#client = client
  }
  tokens = () => this.#tokens
  saveTokens = (tokens: StoredOAuthTokens) => {
    this.#tokens = tokens
  }
  redirectToAuthorization = (url: URL) => {
    this.authorizationUrl = url
  }
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier
  }
  codeVerifier = () => this.#verifier
}

/** Resolves with the query of the redirect. */
async function startCallback(t: Test) {
  const received = Promise.withResolvers<URLSearchParams>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    if (pathname === '/callback') received.resolve(searchParams)
    response.end('signed in')
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}/callback`, received: received.promise }
}

async function signIn(t: Test, env: Record<string, string>, clientMetadataUrl?: string) {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const callback = await startCallback(t)
  const provider = new Provider(callback.url, clientMetadataUrl)
  const client = new Client({ name: 'test', version: '1' })
  const url = new URL(`${server.url}/mcp`)
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider })
  await assert.rejects(client.connect(transport as Transport), UnauthorizedError)
  const { page } = await openPageAs(t, server.url, ann)
  await page.goto(String(provider.authorizationUrl))
  await button(page, 'Approve').click()
  await transport.finishAuth(await callback.received)
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }) as Transport)
  const { structuredContent } = await client.callTool({ name: 'get_workspace' })
  assert.equal((structuredContent as { slug: string }).slug, 'acme')
  await client.close()
  const [key] = await readRows(server.services, 'api_keys', { label: CLIENT_NAME })
  return { key, authorizationUrl: provider.authorizationUrl as URL }
}

test('the client of the official SDK registers, signs in and calls a tool', async (t) => {
  const { key, authorizationUrl } = await signIn(t, {})
  assert.deepEqual([key?.agent_host, key?.agent_access], ['127.0.0.1', 'read'])
  assert.match(authorizationUrl.searchParams.get('client_id') ?? '', /^adit_client_/)
})

test('the same with a metadata document instead of a registration', async (t) => {
  const publisher = await createPublisher(t)
  if (!publisher) return t.skip('openssl is not installed')
  const clientId = `${publisher.url}/client.json`
  publisher.publish({
    client_id: clientId,
    client_name: CLIENT_NAME,
    redirect_uris: ['http://127.0.0.1/callback'],
  })
  const { key, authorizationUrl } = await signIn(
    t,
    { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' },
    clientId,
  )
  assert.equal(key?.agent_host, new URL(publisher.url).host)
  assert.equal(authorizationUrl.searchParams.get('client_id'), clientId)
})
