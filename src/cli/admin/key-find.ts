import { type FoundSecret, findSecret } from '../../server/domain/keys/find.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { joinLines, type Text } from '../style.ts'
import { printState } from '../workspace/key-state.ts'
import { withServices } from './with-services.ts'

export async function find(io: Io): Promise<void> {
  const secret = await (io.interactive ? io.ask('API key (not shown): ', { hidden: true }) : io.readLine())
  if (secret === '')
    throw new UsageError(
      io.interactive
        ? 'No API key was entered.'
        : 'No API key on standard input. Pipe it in (`adit admin key find < key.txt`).',
    )
  const found = await withServices((services) => findSecret(services, secret))
  if (found === 'malformed') throw new UsageError(explainMalformed(secret))
  if (found === 'unknown')
    throw new CommandError(
      'not_found',
      'Unknown key: the checksum matches, but this database has no such key. It may belong to another server.',
    )
  io.data(found, describeSecret(found, io))
}

const explainMalformed = (secret: string) =>
  /^adit_(edge_|agent_)?[0-9A-Za-z]{49}$/.test(secret)
    ? 'This is not a complete Adit key: the checksum does not match. Check that it was copied without a mistake.'
    : 'This is not a complete Adit key (expected adit_, adit_agent_ or adit_edge_ and 49 letters and digits).'

const printSuccessor = ({ id, lastFour }: { id: string; lastFour: string }) => `${id} (ends with ${lastFour})`

function describeSecret(found: FoundSecret, io: Io): Text {
  const state: Text = ['  State      ', printState(found, io)]
  if (found.kind === 'edge') return joinLines([`Credential of edge "${found.name}" (${found.id})`, state])
  return joinLines([
    `API key ${found.id}`,
    `  Label      ${found.label || '(none)'}`,
    `  Workspace  ${found.workspace}`,
    state,
    ...(found.state === 'active' && found.expiresAt ? [`  Expires    ${io.time(found.expiresAt)}`] : []),
    `  Last used  ${io.time(found.lastUsedAt)}`,
    ...(found.successor ? [`  Successor  ${printSuccessor(found.successor)}`] : []),
  ])
}
