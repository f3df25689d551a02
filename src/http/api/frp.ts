// What Adit says to a server of frp, which asks it as a plugin (protocol 0.1.0): may this client log in, may it have this
// proxy, may it go on?
import type { InvalidCredential, MaybePromise, ValidKey } from '../../directory/directory.ts'
import type { WorkspaceView } from '../../domain/workspaces.ts'
import { isDnsLabel } from '../../net/hostname.ts'
import { keyMessages } from '../auth/authenticator.ts'

/** Always with all three, and with HTTP 200: anything else frp takes for a plugin that is broken. */
export interface FrpAnswer {
  reject: boolean
  reject_reason: string
  unchange: boolean
  /** What frp is to go by, where that is not what it asked about. */
  content?: object
}

export interface FrpDirectory {
  verifyKey(secret: string): MaybePromise<ValidKey | InvalidCredential>
  describeWorkspace(id: string): Promise<WorkspaceView>
}

/** Those that are told apart by host name. What is told apart by port has no owner that Adit knows of. */
const HOSTED = ['http', 'https', 'tcpmux']
const KEY_CHARS_MAX = 200

const ALLOWED: FrpAnswer = { reject: false, reject_reason: '', unchange: true }

export const rejected = (reason: string): FrpAnswer => ({
  reject: true,
  reject_reason: reason,
  unchange: true,
})

type Members = Record<string, unknown>

export async function answerFrp(op: unknown, given: unknown, directory: FrpDirectory): Promise<FrpAnswer> {
  const content = membersOf(given)
  switch (op) {
    case 'Login':
      return authorize(content, directory, () => ALLOWED)
    case 'NewProxy':
      return authorize(membersOf(content.user), directory, (workspace) => restrictHosts(content, workspace))
    case 'Ping':
    case 'NewWorkConn':
    case 'NewUserConn':
      return authorize(membersOf(content.user), directory, () => ALLOWED)
    // Only told: frp does not wait for an answer.
    case 'CloseProxy':
      return ALLOWED
    default:
      return rejected(`Adit knows no operation ${JSON.stringify(op ?? null).slice(0, 50)} of frp's plugins.`)
  }
}

async function authorize(
  holder: Members,
  { verifyKey, describeWorkspace }: FrpDirectory,
  decide: (workspace: WorkspaceView) => FrpAnswer,
): Promise<FrpAnswer> {
  const { token } = membersOf(holder.metas)
  if (typeof token !== 'string' || token === '' || token.length > KEY_CHARS_MAX)
    return rejected('Put an API key of Adit into frpc.toml: metadatas.token = "adit_…".')
  const verdict = await verifyKey(token)
  if (!verdict.valid) return rejected(keyMessages[verdict.reason])
  const workspace = await describeWorkspace(verdict.workspaceId)
  return workspace.provisioned
    ? decide(workspace)
    : rejected(`The workspace "${workspace.slug}" is not ready for tunnels yet: it is not provisioned.`)
}

/** A proxy gets host names of its workspace only: a subdomain becomes a name under the workspace's base. */
function restrictHosts(content: Members, { slug, tunnelBase }: WorkspaceView): FrpAnswer {
  const { proxy_type: type, subdomain = '', custom_domains: given } = content
  if (!HOSTED.includes(type as string))
    return rejected(
      `Only proxies with host names can be opened (${HOSTED.join(', ')}), because a port belongs to nobody.`,
    )
  const domains = given === undefined || given === null ? [] : given
  if (!Array.isArray(domains) || typeof subdomain !== 'string')
    return rejected('This is no proxy that frp would ask about.')
  if (subdomain !== '' && !isDnsLabel(subdomain))
    return rejected('A subdomain has lower-case letters, digits and inner hyphens, at most 63 of them.')
  const foreign = domains.find((domain) => !isUnder(tunnelBase, domain))
  if (foreign !== undefined)
    return rejected(
      `${JSON.stringify(foreign).slice(0, 300)} is no host name of the workspace "${slug}": those are <name>.${tunnelBase}.`,
    )
  if (subdomain === '' && domains.length === 0)
    return rejected(`A proxy needs a name: subdomain = "my-app" makes it my-app.${tunnelBase}.`)
  if (subdomain === '') return ALLOWED
  // frp's own subdomains would all be directly under one host, whoever they belong to.
  const hosts = [...new Set([...domains, `${subdomain}.${tunnelBase}`])]
  return { ...ALLOWED, unchange: false, content: { ...content, subdomain: '', custom_domains: hosts } }
}

const isUnder = (base: string, domain: unknown) =>
  typeof domain === 'string' && domain.endsWith(`.${base}`) && isDnsLabel(domain.slice(0, -base.length - 1))

export const membersOf = (given: unknown): Members =>
  typeof given === 'object' && given !== null ? (given as Members) : {}
