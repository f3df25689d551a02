// All commands. Their handlers are loaded when they are called, so that help starts fast.
import { type Command, command } from './command.ts'
import { adminCommands } from './commands/admin.ts'
import { serverCommands } from './commands/server.ts'
import { tunnelCommands } from './commands/tunnels.ts'
import { workspaceCommands } from './commands/workspace.ts'
import { UsageError } from './errors.ts'

const completion = command(
  {
    name: 'completion',
    group: 'Other',
    summary: 'print a completion script for bash, zsh or fish',
    details: 'Load it with:\n  source <(adit completion bash)',
    arguments: ['shell'],
  },
  async ({ shell }, io) => {
    const { completionFor, shells } = await import('./completion.ts')
    const supported = shells.find((one) => one === shell)
    if (!supported) throw new UsageError(`Unknown shell "${shell}" (expected ${shells.join(', ')}).`)
    const script = completionFor[supported](commands)
    io.data({ shell: supported, script }, script)
  },
)

export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...tunnelCommands,
  ...serverCommands,
  ...adminCommands,
  completion,
]
