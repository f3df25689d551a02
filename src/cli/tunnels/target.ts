// What a tunnel leads to: a local server, or with --serve the files of a folder.
import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HOST_HEADER_RULE, isHost, normalizeOrigin } from '../../lib/net/host-header.ts'
import { privatePaths } from '../../server/config/private-paths.ts'
import { FileServer } from '../../tunnel-client/files/file-server.ts'
import { findAditData } from '../../tunnel-client/files/private-files.ts'
import { LocalServer, type StreamServer } from '../../tunnel-client/local-server.ts'
import type { TunnelRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import { UsageError } from '../errors.ts'

export interface TargetInput {
  target: string | undefined
  /** A folder. */
  serve?: string | undefined
  'host-header'?: string | undefined
}

interface OpenTarget {
  /** Its URL. */
  target: string
  /** The beginning of a sentence about it. */
  note: string
  localServer: StreamServer
  /** What the edge has to know of it. */
  request: Pick<TunnelRequest, 'target' | 'hostHeader'>
}

export async function openTarget(
  type: TunnelType,
  { target: text, serve, 'host-header': hostHeader }: TargetInput,
  onUnreachable: (message: string) => void,
): Promise<OpenTarget> {
  if (serve !== undefined) {
    if (text !== undefined) throw new UsageError('A tunnel has a target or --serve <folder>, not both.')
    if (hostHeader !== undefined) throw new UsageError('--host-header has no effect on --serve <folder>.')
    return openFolder(serve)
  }
  if (text === undefined)
    throw new UsageError(
      'Missing argument <target>, or the flag --serve <folder>. Run `adit tunnel --help` for usage.',
    )
  const { host, port, url } = parseTarget(type, text)
  const localServer = new LocalServer({ host, port, onUnreachable })
  if (hostHeader !== undefined && !isHost(hostHeader))
    throw new UsageError(`Invalid --host-header "${hostHeader}" (expected ${HOST_HEADER_RULE}).`)
  const origin = URL.canParse(url) ? normalizeOrigin(new URL(url).origin) : undefined
  const request = type === 'http' ? { target: origin, hostHeader } : {}
  return { target: url, note: `Forwarding to ${url}`, localServer, request }
}

async function openFolder(path: string): Promise<OpenTarget> {
  const folder = await realpath(path).catch(() => undefined)
  if (folder === undefined || !(await stat(folder)).isDirectory())
    throw new UsageError(`There is no folder ${resolve(path)}. --serve shares the files of a folder.`)
  const data = await findAditData(folder, privatePaths())
  if (data !== undefined)
    throw new UsageError(
      `${folder} is not served, because data of Adit would be published: ${data}. ` +
        'Move it, or serve a folder of its own, e.g. `mkdir public` and `adit tunnel --serve public`.',
    )
  const target = pathToFileURL(folder).href
  return { target, note: `Serving the files of ${folder}`, localServer: new FileServer(folder), request: {} }
}

/** A port of this machine, `host:port`, or `http://host:port` (`tcp://` for TCP). */
function parseTarget(type: TunnelType, text: string): { host: string; port: number; url: string } {
  if (type === 'http' && /^https:/i.test(text))
    throw new UsageError('The tunnel forwards to http:// servers only. Use the HTTP port of your server.')
  const scheme = `${type}://`
  const rest = (text.toLowerCase().startsWith(scheme) ? text.slice(scheme.length) : text).replace(/\/$/, '')
  const [, host = 'localhost', portText = rest] =
    /^(\[[\da-f:.]+\]|[^:/?#@[\]\s]+):([^:]*)$/i.exec(rest) ?? []
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535)
    throw new UsageError(
      `Invalid port "${portText}" (expected 1–65535). ` +
        'The target is a port or host:port, e.g. 3000 or 127.0.0.1:3000.',
    )
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port, url: `${scheme}${host}:${port}` }
}
