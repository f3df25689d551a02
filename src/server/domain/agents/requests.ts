// Authorization requests of agents (OAuth 2.1, with PKCE and resource indicators). Nothing is stored: the
// page /authorize sends the query string to show the request, and again with the decision.
import type { Services } from '../context.ts'
import { deriveEncryptionKey, type EncryptionKey } from '../encryption.ts'
import { Fault } from '../fault.ts'
import {
  type AgentClient,
  type AgentClients,
  createAgentClients,
  type FetchDocument,
  UnknownClient,
} from './clients.ts'
import { isRegistered } from './redirect-uris.ts'

const STATE_CHARS_MAX = 4_000
const CHALLENGE = /^[\w-]{43}$/

/** What the sign-in of agents needs besides the services. */
export interface AgentSignIn {
  clients: AgentClients
  codeKey: EncryptionKey
  /** The public URL of the server, which is the issuer. */
  publicUrl: () => string
}

interface SignInOptions {
  /** ADIT_SECRET. */
  secret: string
  fetchDocument: FetchDocument
  publicUrl: () => string
}

export const createAgentSignIn = (
  services: Pick<Services, 'random' | 'clock'>,
  { secret, fetchDocument, publicUrl }: SignInOptions,
): AgentSignIn => ({
  clients: createAgentClients(services, { secret, fetchDocument }),
  codeKey: deriveEncryptionKey('agent codes', secret),
  publicUrl,
})

/** The path of the only resource that the keys of agents are valid for. */
export const RESOURCE_PATH = '/mcp'

interface RequestError {
  error: 'invalid_request' | 'unsupported_response_type' | 'invalid_target'
  description: string
}

export interface AuthorizationRequest {
  client: AgentClient
  clientId: string
  redirectUri: string
  state: string | undefined
  codeChallenge: string
  /** Why the request cannot be approved: the client gets this instead of a code. */
  error: RequestError | undefined
}

/** Throws if the client is unknown or has not registered the redirect URI: not even errors are sent there. */
export async function readRequest(
  { clients, publicUrl }: AgentSignIn,
  query: string,
): Promise<AuthorizationRequest> {
  const parameters = new URLSearchParams(query)
  const names = [...parameters.keys()]
  // RFC 6749, section 3.1. Programs differ in which of them they use.
  if (new Set(names).size < names.length) throw invalidRequest('The request has a parameter more than once.')
  const read = (name: string) => parameters.get(name) ?? ''
  const clientId = read('client_id')
  const redirectUri = read('redirect_uri')
  const client = await findClient(clients, clientId)
  if (!isRegistered(redirectUri, client.redirectUris))
    throw invalidRequest('The agent has not registered the redirect_uri of this request.')
  const state = parameters.get('state') ?? undefined
  const codeChallenge = read('code_challenge')
  return { client, clientId, redirectUri, state, codeChallenge, error: findError(read, publicUrl()) }
}

function findError(read: (name: string) => string, publicUrl: string): RequestError | undefined {
  if (read('state').length > STATE_CHARS_MAX)
    return invalid(`state must have at most ${STATE_CHARS_MAX} characters.`)
  if (read('response_type') !== 'code')
    return { error: 'unsupported_response_type', description: 'response_type must be code.' }
  if (read('code_challenge_method') !== 'S256' || !CHALLENGE.test(read('code_challenge')))
    return invalid('PKCE is required: code_challenge with the code_challenge_method S256.')
  return isResource(read('resource'), publicUrl) ? undefined : invalidTarget(publicUrl)
}

const invalid = (description: string) => ({ error: 'invalid_request', description }) as const

export const invalidTarget = (publicUrl: string) =>
  ({ error: 'invalid_target', description: `resource must be ${publicUrl}${RESOURCE_PATH}.` }) as const

/** Ignores the case of the host, and a slash at the end. */
export const isResource = (text: string, publicUrl: string): boolean =>
  URL.parse(text)?.href.replace(/\/$/, '') === new URL(publicUrl + RESOURCE_PATH).href

async function findClient(clients: AgentClients, id: string): Promise<AgentClient> {
  try {
    return await clients.find(id)
  } catch (error) {
    if (error instanceof UnknownClient) throw invalidRequest(error.message)
    throw error
  }
}

export const invalidRequest = (message: string) =>
  new Fault('invalid_request', { message, details: [{ path: '', message }] })
