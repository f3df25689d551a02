// The server plugin protocol of frp (version 0.1.0): frps asks whether a client may log in, open a proxy and
// continue.

import { isDnsLabel } from '../../../lib/net/hostname.ts'
import { isQuotaReached, QUOTA_REACHED } from '../../domain/quotas/limits.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import type { VerifiedKey } from '../../verification/edge-workspaces.ts'
import type { InvalidCredential, MaybePromise } from '../../verification/verify.ts'
import { keyMessages } from '../auth/authenticator.ts'

/** Sent with HTTP 200, also for a rejection: frps treats any other status as a failure of the plugin. */
export interface FrpResponse {
  reject: boolean
  reject_reason: string
  unchange: boolean
  /** Replaces the content of the request. */
  content?: object
}

interface FrpVerifier {
  clock: () => number
  verifyKey(secret: string): MaybePromise<VerifiedKey | InvalidCredential>
  describeWorkspace(row: WorkspaceRow): WorkspaceView
}

/** Proxy types with host names. Ports belong to no workspace, so other types are rejected. */
const HOST_PROXY_TYPES = ['http', 'https', 'tcpmux']
const KEY_CHARS_MAX = 200

const ALLOWED: FrpResponse = { reject: false, reject_reason: '', unchange: true }

export const rejected = (reason: string): FrpResponse => ({
  reject: true,
  reject_reason: reason,
  unchange: true,
})

type JsonObject = Record<string, unknown>

export async function handleFrp(op: unknown, input: unknown, verifier: FrpVerifier): Promise<FrpResponse> {
  const content = asObject(input)
  const login = op === 'Login' ? content : asObject(content.user)
  const authorizeWithinQuota = (decide: (workspace: WorkspaceView) => FrpResponse) =>
    authorize(login, verifier, (workspace) =>
      isQuotaReached(workspace.quota, verifier.clock()) ? rejected(QUOTA_REACHED) : decide(workspace),
    )
  switch (op) {
    case 'Login':
      return authorizeWithinQuota((workspace) => restrictUser(content, workspace))
    case 'NewProxy':
      return authorizeWithinQuota((workspace) => restrictProxy(content, workspace))
    case 'NewWorkConn':
    case 'NewUserConn':
      return authorizeWithinQuota(() => ALLOWED)
    // The quota does not apply: frpc stays connected, and carries traffic again when the quota renews.
    case 'Ping':
      return authorize(login, verifier, () => ALLOWED)
    // frps ignores the response.
    case 'CloseProxy':
      return ALLOWED
    default:
      return rejected(`Unsupported frp plugin operation ${JSON.stringify(op ?? null).slice(0, 50)}.`)
  }
}

async function authorize(
  login: JsonObject,
  { verifyKey, describeWorkspace }: FrpVerifier,
  decide: (workspace: WorkspaceView) => FrpResponse,
): Promise<FrpResponse> {
  const { token } = asObject(login.metas)
  if (typeof token !== 'string' || token === '' || token.length > KEY_CHARS_MAX)
    return rejected('Missing API key. Set metadatas.token = "adit_…" in frpc.toml.')
  const result = await verifyKey(token)
  if (!result.valid) return rejected(keyMessages[result.reason])
  const workspace = describeWorkspace(result.workspace)
  return workspace.provisioned
    ? decide(workspace)
    : rejected(`The workspace "${workspace.slug}" is not provisioned yet.`)
}

/** frps rejects a second client with the same user and client ID, so each workspace has its own users. */
function restrictUser({ user }: JsonObject, { slug }: WorkspaceView): FrpResponse {
  return typeof user === 'string' && isNamespaced(slug, `${user}.`)
    ? ALLOWED
    : rejected(`Set user = "${slug}" in frpc.toml.`)
}

/**
 * The names of proxies and groups are global in frps, and host names are public: a proxy gets only those of
 * its workspace.
 */
function restrictProxy(content: JsonObject, workspace: WorkspaceView): FrpResponse {
  const { proxy_name: name, proxy_type: type, group } = content
  const { slug } = workspace
  // frpc would not recognize its proxy under another name, so the plugin cannot add the prefix.
  if (!isNamespaced(slug, name))
    return rejected(`The name of the proxy must begin with "${slug}.". Set user = "${slug}" in frpc.toml.`)
  if (!HOST_PROXY_TYPES.includes(type as string))
    return rejected(`Unsupported proxy type. Use one with host names: ${HOST_PROXY_TYPES.join(', ')}.`)
  const hosts = parseHosts(content, workspace)
  if (typeof hosts === 'string') return rejected(hosts)
  return {
    ...ALLOWED,
    unchange: false,
    content: {
      ...content,
      // frps would put the subdomains of all workspaces directly under one host.
      subdomain: '',
      custom_domains: hosts,
      ...(typeof group === 'string' && group !== '' && { group: `${slug}.${group}` }),
    },
  }
}

/** The full host names of a proxy, or why it cannot have them. */
function parseHosts(
  { subdomain = '', custom_domains: customDomains }: JsonObject,
  { slug, tunnelBase }: WorkspaceView,
): string[] | string {
  const domains = customDomains ?? []
  if (!Array.isArray(domains) || typeof subdomain !== 'string')
    return 'Malformed proxy: custom_domains must be a list, and subdomain a string.'
  if (subdomain !== '' && !isDnsLabel(subdomain))
    return 'Invalid subdomain. Use up to 63 lower-case letters, digits and hyphens between them.'
  const foreign = domains.find((domain) => !isUnder(tunnelBase, domain))
  if (foreign !== undefined)
    return (
      `${JSON.stringify(foreign).slice(0, 300)} is not a host name of the workspace "${slug}". ` +
      `Use <name>.${tunnelBase}.`
    )
  if (subdomain === '' && domains.length === 0)
    return `Missing host name. Set subdomain = "my-app" to get my-app.${tunnelBase}.`
  return [...new Set(subdomain === '' ? domains : [...domains, `${subdomain}.${tunnelBase}`])]
}

const isNamespaced = (slug: string, name: unknown) => typeof name === 'string' && name.startsWith(`${slug}.`)

const isUnder = (base: string, domain: unknown) =>
  typeof domain === 'string' && domain.endsWith(`.${base}`) && isDnsLabel(domain.slice(0, -base.length - 1))

export const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? (value as JsonObject) : {}
