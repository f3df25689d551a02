// Agents that sign in (OAuth 2.1), without a client library: every parameter can be wrong.
import { createHash, randomBytes } from 'node:crypto'
import { readResponse, type TestResponse } from '../api/server.ts'
import type { TestBrowser } from './users.ts'

export const CALLBACK = 'https://agent.example.com/callback?app=1'

type Parameters = Record<string, string | undefined>

/** Leaves out parameters that are undefined. */
const encode = (parameters: Parameters): string =>
  new URLSearchParams(
    Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined),
  ).toString()

export const register = async (url: string, metadata: object, headers = {}): Promise<TestResponse> =>
  readResponse(
    await fetch(`${url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(metadata),
    }),
  )

export async function registerClient(url: string, redirectUri = CALLBACK, name = 'Test agent') {
  const { status, text, json } = await register(url, { client_name: name, redirect_uris: [redirectUri] })
  if (status !== 201) throw new Error(text)
  return json.client_id as string
}

interface AgentRequest {
  /** The query string of /authorize. */
  query: string
  /** The form of the exchange, without the code. */
  form: Parameters
}

/** An authorization request and its exchange; `more` replaces parameters of the request. */
export function createRequest(url: string, clientId: string, more: Parameters = {}): AgentRequest {
  const verifier = randomBytes(32).toString('base64url')
  const shared = { client_id: clientId, redirect_uri: CALLBACK, resource: `${url}/mcp` }
  const request: Parameters = {
    ...shared,
    response_type: 'code',
    state: 'state of the agent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...more,
  }
  const { redirect_uri = CALLBACK } = request
  const form = { ...shared, redirect_uri, grant_type: 'authorization_code', code_verifier: verifier }
  return { query: encode(request), form }
}

export const exchange = async (url: string, form: Parameters, headers = {}): Promise<TestResponse> =>
  readResponse(
    await fetch(`${url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: encode(form),
    }),
  )

type User = Pick<TestBrowser, 'post'>

export const approve = (user: User, query: string, managesKeys = false, workspace = 'acme') =>
  user.post(`/workspaces/${workspace}/agents`, { request: query, managesKeys })

/** The parameters that the redirect adds. */
export const readRedirect = ({ status, text, json }: TestResponse) => {
  if (status !== 200) throw new Error(text)
  const url = new URL(json.redirectTo)
  return { url, ...Object.fromEntries(url.searchParams) } as { url: URL; [name: string]: unknown } & {
    code?: string
  }
}

/** The request after the user has approved it: the form has the code. */
export async function approveRequest(
  user: User,
  { query, form }: AgentRequest,
  managesKeys = false,
  workspace = 'acme',
): Promise<AgentRequest> {
  const { code } = readRedirect(await approve(user, query, managesKeys, workspace))
  return { query, form: { ...form, code } }
}

/** A whole sign-in; returns the key, and the form that it was exchanged for. */
export async function signInAgent(
  url: string,
  user: User,
  { managesKeys = false, name = 'Test agent', workspace = 'acme' } = {},
) {
  const request = createRequest(url, await registerClient(url, CALLBACK, name))
  const { form } = await approveRequest(user, request, managesKeys, workspace)
  const { status, text, json } = await exchange(url, form)
  if (status !== 200) throw new Error(text)
  return { token: json.access_token as string, form, json }
}
