// Who may use a tunnel: --basic-auth and --allow-ip of `adit tunnel`.
import { clientEnvironment } from '../../server/config/environment.ts'
import type { Opened, RequestedAccess, TunnelType } from '../../tunnel-protocol/protocol.ts'
import { InvalidAccess, parseAccess } from '../../tunnel-protocol/requested-access.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { flagSource, type OptionSource } from './option-source.ts'

const VARIABLE = 'ADIT_TUNNEL_BASIC_AUTH'

export interface AccessInput {
  'basic-auth': string | undefined
  'allow-ip': string[]
  /** The flags by default. */
  source?: OptionSource
}

/** Undefined if anyone may use the tunnel. */
export async function readAccess(
  type: TunnelType,
  { 'basic-auth': flag, 'allow-ip': allowIp, source = flagSource }: AccessInput,
  io: Io,
): Promise<RequestedAccess | undefined> {
  const variable = clientEnvironment().tunnelBasicAuth
  const credential = flag ?? variable
  if (credential === undefined && allowIp.length === 0) return undefined
  if (credential !== undefined && type === 'tcp')
    throw new UsageError(
      `${flag === undefined ? VARIABLE : '--basic-auth'} is for HTTP tunnels only. Limit a TCP tunnel with ` +
        `--allow-ip${flag === undefined ? ', and unset the variable' : ''}.`,
    )
  if (flag === undefined && variable !== undefined && !variable.includes(':'))
    throw new UsageError(`Invalid ${VARIABLE} (expected user:password).`)
  const parse = (option: 'allow-ip' | 'basic-auth', access: object) => {
    try {
      return parseAccess(type, access)
    } catch (error) {
      throw error instanceof InvalidAccess ? source.invalid(option, () => error.message) : error
    }
  }
  // Invalid networks are reported before the password is asked for.
  const networks = parse('allow-ip', { allowIp })
  if (credential === undefined) return networks
  return parse('basic-auth', { ...networks, basicAuth: await readCredential(credential, io) })
}

/** `user:password`, or a user whose password is not on the command line. */
async function readCredential(credential: string, io: Io): Promise<{ user: string; password: string }> {
  const colon = credential.indexOf(':')
  if (colon >= 0) return { user: credential.slice(0, colon), password: credential.slice(colon + 1) }
  const password = io.interactive
    ? await io.ask(`Password for "${credential}" (not shown): `, { hidden: true })
    : await io.readLine()
  if (password === '' && !io.interactive)
    throw new UsageError(
      `No password on standard input. Pipe it in, e.g. \`adit … < password.txt\`, ` +
        `set ${VARIABLE} to user:password, or use a terminal.`,
    )
  return { user: credential, password }
}

/** Describes the rules of the command, and those that the name has in the dashboard. */
export function accessNote(access: Opened['access']): string {
  const limits = [
    access?.basicAuth && 'requests need a user and password',
    access?.allowIp && 'only some addresses are allowed',
  ].filter(Boolean)
  return limits.length > 0 ? ` Access is limited: ${limits.join(', ')}.` : ''
}
