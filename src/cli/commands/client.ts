// The commands of the client: those that need neither the server nor its database.
import type { Command } from '../command.ts'
import { completionCommand } from './completion.ts'
import { requestCommands } from './requests.ts'
import { tunnelCommands } from './tunnels.ts'
import { workspaceCommands } from './workspace.ts'

export const clientCommands: readonly Command[] = [
  ...workspaceCommands,
  ...tunnelCommands,
  ...requestCommands,
  ...completionCommand(() => clientCommands),
]

/** First words of all other commands. */
export const serverCommandWords: ReadonlySet<string> = new Set(['serve', 'edge', 'tokens-file', 'admin'])
