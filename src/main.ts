// The whole program. Called by bin/adit.js, which has checked the Node version.
import { commands } from './cli/commands.ts'
import { run } from './cli/run.ts'

export const main = (args: string[]): Promise<number> =>
  run(args, { title: 'Adit: a control plane for tunnels, with an edge and a client', commands })
