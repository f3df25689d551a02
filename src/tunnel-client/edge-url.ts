// The edge that the control plane names for a workspace. Its URL gets the API key, so it is validated here.
import { EDGE_PORT } from '../lib/net/edge-port.ts'
import { isLoopbackHost } from '../lib/net/hostname.ts'
import { messageLine } from '../lib/net/untrusted-text.ts'

const LOCAL_EDGE = `http://127.0.0.1:${EDGE_PORT}`
const URL_CHARS_MAX = 300

interface NamedEdge {
  readonly url: string | null
  readonly tunnelDomain: string
}

/** `fromDomain`: the operator has set no URL, so DNS decides. */
interface FoundEdge {
  readonly edge: string
  readonly fromDomain: boolean
}

/** Throws if the API key may not be sent there. `controlPlane` is the URL that was asked. */
export function toEdgeUrl({ url, tunnelDomain }: NamedEdge, controlPlane: string): FoundEdge {
  const { protocol, hostname } = new URL(controlPlane)
  if (url !== null) return { edge: parse(url, protocol), fromDomain: false }
  if (!/(^|\.)localhost$/.test(tunnelDomain))
    return { edge: parse(`${protocol}//${tunnelDomain}`, protocol), fromDomain: true }
  // Whatever listens on this machine is not the edge of a server elsewhere.
  if (!isLoopbackHost(hostname))
    throw wrongEdge('The server names no edge, and its tunnel domain is localhost.')
  return { edge: LOCAL_EDGE, fromDomain: true }
}

/** Other edges that an edge names, without those to which the API key may not be sent. */
export function acceptEdges(urls: readonly string[], edge: string): string[] {
  const { protocol } = new URL(edge)
  return urls.flatMap((url) => {
    try {
      return [parse(url, protocol)]
    } catch {
      return []
    }
  })
}

function parse(text: string, controlPlaneProtocol: string): string {
  const url = String(text).length <= URL_CHARS_MAX ? URL.parse(text) : null
  const { protocol = '', username, password, search, hash } = url ?? {}
  if (!url || !/^https?:$/.test(protocol) || username || password || search || hash)
    throw wrongEdge('The server names an edge whose URL is invalid.')
  if (protocol === 'http:' && controlPlaneProtocol !== 'http:' && !isLoopbackHost(url.hostname))
    throw wrongEdge(
      `The server names the edge ${messageLine(url.origin)}, which has no encryption, so your API key is not ` +
        'sent to it.',
    )
  return url.href.replace(/\/+$/, '')
}

const wrongEdge = (problem: string) =>
  new Error(`${problem} Ask its operator to set the URL of the edge with \`adit admin edge set-url\`.`)
