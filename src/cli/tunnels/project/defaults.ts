// `adit tunnel` without a target opens the tunnel of adit.json that --name selects, or the only one.
import type { TunnelType } from '../../../tunnel-protocol/protocol.ts'
import { UsageError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { AccessInput } from '../access.ts'
import { flagSource } from '../option-source.ts'
import type { TargetInput } from '../target.ts'
import { confirmTargets, readProject } from './read.ts'

interface Input extends TargetInput, AccessInput {
  name: string | undefined
  pool: boolean
  yes: boolean
  'mask-header': string[]
}

const isSet = (value: unknown) => (Array.isArray(value) ? value.length > 0 : Boolean(value))

/** Flags take precedence over the file. */
export async function fromProject<I extends Input>(input: I, io: Io): Promise<I & { type: TunnelType }> {
  const project = await readProject()
  const tunnels = project?.tunnels ?? []
  const matches = input.name === undefined ? tunnels : tunnels.filter(({ name }) => name === input.name)
  const [tunnel] = matches
  if (project === undefined) return { ...input, type: 'http' }
  if (tunnel === undefined || matches.length > 1)
    throw new UsageError(
      `adit.json has the tunnels ${tunnels.map(({ name }) => name).join(', ')}. Choose one with --name, open ` +
        'all of them with `adit start`, or pass a target: `adit tunnel 3000`.',
    )
  await confirmTargets(project.path, [tunnel], input.yes, io)
  return {
    ...input,
    ...tunnel,
    pool: input.pool || tunnel.pool,
    inspect: input.inspect || tunnel.inspect,
    'mask-header': [...input['mask-header'], ...tunnel['mask-header']],
    'basic-auth': input['basic-auth'] ?? tunnel['basic-auth'],
    'allow-ip': input['allow-ip'].length > 0 ? input['allow-ip'] : tunnel['allow-ip'],
    'host-header': input['host-header'] ?? tunnel['host-header'],
    ...(input.insecure || input.ca !== undefined ? { insecure: input.insecure, ca: input.ca } : {}),
    source: {
      ...flagSource,
      invalid: (option, describe) =>
        (isSet(input[option as keyof Input]) ? flagSource : tunnel.source).invalid(option, describe),
    },
  }
}
