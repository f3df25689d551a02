// The OAuth clients of agents. None is stored: the id of a client is the https URL of its metadata document
// (Client ID Metadata Documents), or contains its registration, encrypted (RFC 7591).
import { TEXT_CHARS_MAX } from '../../../contract/limits.ts'
import { cleanText, isBlank } from '../../../contract/text.ts'
import { createLruCache } from '../../../lib/collections/lru-cache.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import type { Services } from '../context.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../encryption.ts'
import { isRedirectUri } from './redirect-uris.ts'

export interface AgentClient {
  /** Chosen by the client, so it proves nothing. */
  name: string
  /** The host that publishes the metadata document; null for a registered client. */
  host: string | null
  redirectUris: readonly string[]
}

/** Why a client is unknown, in a sentence for the user. */
export class UnknownClient extends Error {
  override name = 'UnknownClient'
}

/** Returns the text of the document at a URL; throws `UnknownClient` if there is none. */
export type FetchDocument = (url: URL) => Promise<string>

const CLIENT_ID_CHARS_MAX = 4_000
const REDIRECT_URIS_MAX = 20
/** The limit for all redirect URIs of a registration together, so that its id fits into a URL. */
const REGISTERED_URIS_CHARS_MAX = 2_000
const REGISTERED_PREFIX = 'adit_client_'
const UNNAMED = 'unnamed agent'

const CACHED_DOCUMENTS_MAX = 200
const CACHED_MS = 5 * MINUTE_MS

interface Registration {
  name: string
  redirectUris: string[]
}

export type AgentClients = ReturnType<typeof createAgentClients>

export function createAgentClients(
  { random, clock }: Pick<Services, 'random' | 'clock'>,
  { secret, fetchDocument }: { secret: string; fetchDocument: FetchDocument },
) {
  const key = deriveEncryptionKey('agent clients', secret)
  const documents = createLruCache<{ client: AgentClient; until: number }>(CACHED_DOCUMENTS_MAX)

  async function findPublished(id: string): Promise<AgentClient> {
    const cached = documents.get(id)
    if (cached && clock() < cached.until) return cached.client
    const url = parseClientUrl(id)
    const client = { ...parseDocument(await fetchDocument(url), id), host: url.host }
    documents.set(id, { client, until: clock() + CACHED_MS })
    return client
  }

  return {
    /** Rejects with `UnknownClient`. */
    async find(id: string): Promise<AgentClient> {
      if (id.length > CLIENT_ID_CHARS_MAX) throw new UnknownClient('The client_id is too long.')
      if (!id.startsWith(REGISTERED_PREFIX)) return findPublished(id)
      try {
        return { ...decrypt<Registration>(key, id.slice(REGISTERED_PREFIX.length)), host: null }
      } catch {
        throw new UnknownClient('The client_id was not issued by this server. Register the agent again.')
      }
    },

    /** Returns the id, which contains the registration; undefined if a redirect URI is not allowed. */
    register(metadata: { name: string | undefined; redirectUris: readonly string[] }) {
      const redirectUris = [...metadata.redirectUris]
      if (!isRegistrable(redirectUris)) return undefined
      const registration = { name: readName(metadata.name), redirectUris }
      const encrypted = Buffer.from(encrypt(key, registration, random), 'base64').toString('base64url')
      return { id: REGISTERED_PREFIX + encrypted, ...registration }
    },
  }
}

const isRegistrable = (uris: readonly string[]): boolean =>
  uris.length > 0 && uris.every(isRedirectUri) && uris.join('').length <= REGISTERED_URIS_CHARS_MAX

const readName = (name: unknown, fallback = UNNAMED): string => {
  const cleaned = typeof name === 'string' ? cleanText(name.slice(0, 1_000), TEXT_CHARS_MAX) : ''
  return isBlank(cleaned) ? fallback : cleaned
}

/** Must have a path, and no user or fragment (draft-ietf-oauth-client-id-metadata-document, section 3). */
function parseClientUrl(id: string): URL {
  const url = URL.parse(id)
  const isValid =
    url?.protocol === 'https:' &&
    url.pathname !== '/' &&
    url.hash === '' &&
    url.username === '' &&
    url.password === '' &&
    // Only in normalized form, so without dot segments.
    url.href === id
  if (isValid) return url
  throw new UnknownClient(
    'The client_id is neither from POST /oauth/register of this server nor the https URL of a metadata document.',
  )
}

function parseDocument(text: string, id: string): Registration {
  const document = parseObject(text)
  if (document?.client_id !== id)
    throw new UnknownClient('The metadata document of the agent does not have its own URL as client_id.')
  const { redirect_uris: uris } = document
  const listed = Array.isArray(uris) ? uris.slice(0, REDIRECT_URIS_MAX) : []
  const redirectUris = listed.filter((uri): uri is string => typeof uri === 'string' && isRedirectUri(uri))
  return { name: readName(document.client_name, new URL(id).host.slice(0, TEXT_CHARS_MAX)), redirectUris }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    throw new UnknownClient('The metadata document of the agent is not JSON.')
  }
}
