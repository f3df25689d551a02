// `--inspect`: records the requests of the tunnels of this command.
import { createFolder } from '../../edge-sdk/usage/folder.ts'
import type { Inspector } from '../../inspector/open.ts'
import { shellQuote } from '../../lib/client-commands.ts'
import { inspectorFolder } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { isToken } from '../../tunnel-protocol/http/token.ts'
import { CommandError } from '../errors.ts'
import { openInspectorPage } from './inspector-page.ts'
import { flagSource, type OptionSource } from './option-source.ts'
import type { TunnelOutput } from './output.ts'

const NAME_CHARS_MAX = 100

export interface InspectInput {
  'mask-header'?: string[]
  source?: OptionSource
}

/**
 * `command`: what starts it again, for its page. Without it there is no page, and only commands show
 * requests.
 */
export async function startInspector(
  inputs: readonly InspectInput[],
  command?: readonly string[],
): Promise<Inspector> {
  const maskHeaders = readMaskHeaders(inputs)
  // Loaded only when it is used.
  const { openInspector } = await import('../../inspector/open.ts')
  const folder = inspectorFolder()
  try {
    await createFolder(folder)
    return await openInspector({
      version,
      maskHeaders,
      socketFolder: folder,
      ...(command && { command: command.map(shellQuote).join(' '), files: await openInspectorPage() }),
    })
  } catch (error) {
    throw new CommandError('inspector', `Requests cannot be recorded: ${(error as Error).message}`)
  }
}

/** Rejects what is not the name of a header. */
export function readMaskHeaders(inputs: readonly InspectInput[]): string[] {
  for (const { 'mask-header': names = [], source = flagSource } of inputs)
    for (const name of names)
      if (!isToken(name, NAME_CHARS_MAX))
        throw source.invalid(
          'mask-header',
          (option) => `Invalid ${option('mask-header')} "${name}" (expected the name of a header).`,
        )
  return inputs.flatMap((input) => input['mask-header'] ?? [])
}

export function announceInspector(inspector: Inspector, output: TunnelOutput): void {
  const url = inspector.createLink()
  output.event('inspector', { url })
  output.info(
    url === undefined
      ? 'Requests are recorded. Run `adit requests list` in another terminal to see them.'
      : `Requests are recorded, see ${url} or \`adit requests list\`. The link works once.`,
  )
}
