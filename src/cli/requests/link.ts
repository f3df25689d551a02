// `adit requests link`: a link to the inspector's page, for each program that records.
import { API, type Info, type Link } from '../../inspector/api.ts'
import type { Io } from '../io.ts'
import { findRecorders } from './recorders.ts'

export async function link(io: Io): Promise<void> {
  const links = await Promise.all(
    (await findRecorders()).map(async (recorder) => {
      const { tunnels } = await recorder.call<Info>('GET', API.info)
      const { url } = await recorder.call<Link>('POST', API.link, {})
      return { url, tunnels: tunnels.map(({ name }) => name) }
    }),
  )
  const lines = links.map(({ url, tunnels }) => (links.length > 1 ? `${url}  ${tunnels.join(', ')}` : url))
  io.data(links, lines.join('\n'))
}
