// The client alone, for the package adit-cli: it runs on Node 20, and without the server and its
// dependencies.
import { clientCommands, serverCommandWords } from './cli/commands/client.ts'
import { run } from './cli/run.ts'
import { CLIENT_PACKAGE } from './lib/client-package.ts'

export const main = (args: string[]): Promise<number> =>
  run(args, {
    title: 'Adit: expose local servers at public URLs, and manage API keys and usage',
    commands: clientCommands,
    whyMissing: (word) =>
      serverCommandWords.has(word)
        ? `This is the client only (${CLIENT_PACKAGE}), which has no \`adit ${word}\`. Run it on the server, ` +
          'where the whole program is: in its clone as `npx --no-install adit`, or in the package, the container ' +
          'image or the executable of Adit.'
        : undefined,
  })
