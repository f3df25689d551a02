// `adit requests link`: a link to the inspector's page, for each program that records.
import { API, type Info, type Link } from '../../inspector/api.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { findRecorders, type Recorder } from './recorders.ts'

export async function link(io: Io): Promise<void> {
  const found = await Promise.all((await findRecorders()).map(createLink))
  const links = found.filter((each) => each !== undefined)
  if (links.length === 0) throw new CommandError('not_found', 'No tunnel of yours has a page.')
  const lines = links.map(({ url, tunnels }) => (links.length > 1 ? `${url}  ${tunnels.join(', ')}` : url))
  io.data(links, lines.join('\n'))
}

/** Undefined if the program has no page, as `adit mcp`. */
async function createLink(recorder: Recorder): Promise<{ url: string; tunnels: string[] } | undefined> {
  const { tunnels } = await recorder.call<Info>('GET', API.info)
  try {
    const { url } = await recorder.call<Link>('POST', API.link, {})
    return { url, tunnels: tunnels.map(({ name }) => name) }
  } catch (error) {
    if (error instanceof CommandError && error.code === 'not_found') return undefined
    throw error
  }
}
