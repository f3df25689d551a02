// The command that prints completion scripts for shells.
import { type Command, command } from '../command.ts'
import { UsageError } from '../errors.ts'

/** `list` returns the commands to complete. */
export const completionCommand = (list: () => readonly Command[]): Command =>
  command(
    {
      name: 'completion',
      group: 'Other',
      summary: 'print a completion script for bash, zsh or fish',
      details: 'Load it with:\n  source <(adit completion bash)',
      arguments: ['shell'],
    },
    async ({ shell }, io) => {
      const { completionFor, shells } = await import('../completion.ts')
      const supported = shells.find((name) => name === shell)
      if (!supported) throw new UsageError(`Unknown shell "${shell}" (expected ${shells.join(', ')}).`)
      const script = completionFor[supported](list())
      io.data({ shell: supported, script }, script)
    },
  )
