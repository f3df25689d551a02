// All commands. Their handlers are loaded when they are called, so that help starts fast.
import type { Command } from './command.ts'
import { adminCommands } from './commands/admin.ts'
import { completionCommand } from './commands/completion.ts'
import { edgeCommands } from './commands/edge.ts'
import { requestCommands } from './commands/requests.ts'
import { serverCommands } from './commands/server.ts'
import { tunnelCommands } from './commands/tunnels.ts'
import { workspaceCommands } from './commands/workspace.ts'

export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...tunnelCommands,
  ...requestCommands,
  ...edgeCommands,
  ...serverCommands,
  ...adminCommands,
  ...completionCommand(() => commands),
]
