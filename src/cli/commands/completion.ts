// The command that prints completion scripts for shells.
import { type Command, command, inGroup } from '../command.ts'
import { UsageError } from '../errors.ts'

/** `list` returns the commands to complete. */
export const completionCommand = (list: () => readonly Command[]): readonly Command[] =>
  inGroup('Other', [
    command({
      name: 'completion',
      summary: 'print a completion script for bash, zsh or fish',
      details: 'Load it with:\n  source <(adit completion bash)',
      arguments: ['shell'],
      run: async ({ shell }, io) => {
        const { completionFor, shells } = await import('../completion.ts')
        const supported = shells.find((name) => name === shell)
        if (!supported) throw new UsageError(`Unknown shell "${shell}" (expected ${shells.join(', ')}).`)
        const script = completionFor[supported](list())
        io.data({ shell: supported, script }, script)
      },
    }),
  ])
