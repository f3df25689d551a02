// Reads and validates the tunnels of adit.json. Errors name the JSON path of the invalid member.
import { dirname, resolve } from 'node:path'
import { PROJECT_FILE, PROJECT_TUNNELS_MAX, ProjectTunnel } from '../../../contract/project-file.ts'
import { DNS_LABEL_RULE, isDnsLabel, isLoopbackHost } from '../../../lib/net/hostname.ts'
import { oneLine } from '../../../lib/net/untrusted-text.ts'
import { Fault } from '../../../server/domain/fault.ts'
import { type Checker, checker } from '../../../server/domain/validation.ts'
import type { TunnelType } from '../../../tunnel-protocol/protocol.ts'
import { CommandError, UsageError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { memberSource, type OptionSource } from '../option-source.ts'
import { findProjectFile } from './find.ts'

const SECRET_MEMBER = /pass|secret|token|credential|api.?key/i
const SHOWN_CHARS_MAX = 50

/** A tunnel of adit.json in the form of the flags of `adit tunnel`. */
export interface ProjectTunnelInput {
  name: string
  type: TunnelType
  target: string | undefined
  serve: string | undefined
  pool: boolean
  'basic-auth': string | undefined
  'allow-ip': string[]
  'host-header': string | undefined
  insecure: boolean
  ca: string | undefined
  inspect: boolean
  'mask-header': string[]
  source: OptionSource
}

interface Project {
  readonly path: string
  readonly tunnels: readonly ProjectTunnelInput[]
}

/** Undefined if there is no project file. */
export async function readProject(): Promise<Project | undefined> {
  const found = await findProjectFile(process.cwd())
  if (!found) return undefined
  const { path, text } = found
  return { path, tunnels: parse(path, text) }
}

function parse(path: string, text: string): ProjectTunnelInput[] {
  const fail = (message: string) => new UsageError(`${path}: ${oneLine(message)}`)
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch (error) {
    throw fail(`invalid JSON (${(error as Error).message}).`)
  }
  const { $schema: _schema, tunnels, ...others } = requireObject(root, '', fail)
  rejectMembers(others, '', '$schema, tunnels', fail)
  const entries = Object.entries(requireObject(tunnels, '/tunnels', fail))
  if (entries.length === 0 || entries.length > PROJECT_TUNNELS_MAX)
    throw fail(`/tunnels must have 1 to ${PROJECT_TUNNELS_MAX} tunnels.`)
  return entries.map(([name, value]) => {
    const member = `/tunnels/${name.slice(0, SHOWN_CHARS_MAX)}`
    if (!isDnsLabel(name)) throw fail(`${member} is not a valid tunnel name (expected ${DNS_LABEL_RULE}).`)
    const input = toInput(name, member, requireObject(value, member, fail), dirname(path), fail)
    return { ...input, source: memberSource(path, name) }
  })
}

type Fail = (message: string) => UsageError

function requireObject(value: unknown, path: string, fail: Fail): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw fail(`${path || 'the file'} must be an object.`)
  return value as Record<string, unknown>
}

function rejectMembers(others: Record<string, unknown>, path: string, expected: string, fail: Fail): void {
  const [name] = Object.keys(others)
  if (name === undefined) return
  const advice = SECRET_MEMBER.test(name)
    ? 'is a secret, which does not belong in a project file; use `adit login`, ADIT_API_KEY or ' +
      'ADIT_TUNNEL_BASIC_AUTH'
    : `is unknown; expected ${expected}`
  throw fail(`${path}/${name.slice(0, SHOWN_CHARS_MAX)} ${advice}.`)
}

function toInput(
  name: string,
  path: string,
  value: Record<string, unknown>,
  folder: string,
  fail: Fail,
): Omit<ProjectTunnelInput, 'source'> {
  const members = Object.keys(ProjectTunnel.properties)
  const others = Object.fromEntries(Object.entries(value).filter(([member]) => !members.includes(member)))
  rejectMembers(others, path, members.join(', '), fail)
  const check: Checker<ProjectTunnel> = checker(ProjectTunnel, path)
  try {
    check(value)
  } catch (error) {
    throw error instanceof Fault ? fail(`${error.message}.`) : error
  }
  const { target, serve, type = 'http', basicAuth, allowIp = [], hostHeader, pool = false } = value
  const { insecure = false, ca, inspect = false, maskHeader = [] } = value
  if ((target === undefined) === (serve === undefined))
    throw fail(`${path} needs a target or serve, not both.`)
  if (type === 'tcp' && (serve ?? basicAuth ?? hostHeader) !== undefined)
    throw fail(`${path} is a TCP tunnel, which has no serve, basicAuth or hostHeader.`)
  if (type === 'tcp' && inspect)
    throw fail(`${path} is a TCP tunnel; only requests of HTTP tunnels are recorded.`)
  if (maskHeader.length > 0 && !inspect)
    throw fail(`${path} has maskHeader, which is for tunnels with inspect.`)
  if ((insecure || ca !== undefined) && !/^https:/i.test(String(target)))
    throw fail(`${path} has insecure or ca, which are for targets with https://.`)
  if (insecure && ca !== undefined)
    throw fail(`${path} has insecure, which accepts any certificate, so ca has no effect. Use one of them.`)
  return {
    name,
    type,
    target: target === undefined ? undefined : resolveSocket(folder, String(target)),
    serve: serve === undefined ? undefined : resolve(folder, serve),
    pool,
    'basic-auth': basicAuth,
    'allow-ip': allowIp,
    'host-header': hostHeader,
    insecure,
    ca: ca === undefined ? undefined : resolve(folder, ca),
    inspect,
    'mask-header': maskHeader,
  }
}

/** Resolves the path of a Unix socket relative to the folder of the file. */
const resolveSocket = (folder: string, target: string) =>
  target.replace(/^unix:(?:\/\/)?(.+)$/is, (_, path: string) => `unix:${resolve(folder, path)}`)

const PORT_OR_HOST_AND_PORT = /^(?:(?:https?|tcp):\/\/)?(?:(\[[^\]]*\]|[\w.-]+):)?\d+\/?$/i

/** Whether the target is a port, or a loopback host with a port. Both may have a scheme. */
function isLoopbackPort(target: string): boolean {
  const match = PORT_OR_HOST_AND_PORT.exec(target)
  return match !== null && isLoopbackHost(match[1] ?? 'localhost')
}

/** Asks before publishing anything but a local port: someone else may have written the file. */
export async function confirmTargets(
  path: string,
  tunnels: readonly ProjectTunnelInput[],
  yes: boolean,
  io: Io,
): Promise<void> {
  const others = tunnels.flatMap(({ name, target, serve }) => {
    if (serve !== undefined) return [`${name}: the files of ${oneLine(serve)}`]
    return target === undefined || isLoopbackPort(target) ? [] : [`${name}: ${oneLine(target)}`]
  })
  if (others.length === 0 || yes) return
  const question = `${path} publishes more than ports of this machine: ${others.join('; ')}.`
  if (!io.interactive) throw new UsageError(`${question} Confirm with --yes.`)
  if (!(await io.confirm(`${question} Continue?`))) throw new CommandError('canceled', 'Canceled.')
}

export const noProjectFile = () =>
  new UsageError(
    `There is no ${PROJECT_FILE} in this folder or above it in its repository. Create one, for example ` +
      '{ "tunnels": { "my-app": { "target": 3000 } } }.',
  )
