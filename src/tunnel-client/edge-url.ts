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
  const { protocol } = new URL(controlPlane)
  if (url === null) {
    if (/(^|\.)localhost$/.test(tunnelDomain)) return { edge: LOCAL_EDGE, fromDomain: true }
    return { edge: parse(`${protocol}//${tunnelDomain}`, protocol), fromDomain: true }
  }
  return { edge: parse(url, protocol), fromDomain: false }
}

function parse(text: string, controlPlaneProtocol: string): string {
  const url = String(text).length <= URL_CHARS_MAX ? URL.parse(text) : null
  const { protocol = '', username, password, search, hash } = url ?? {}
  if (!url || !/^https?:$/.test(protocol) || username || password || search || hash)
    throw new Error('The server names an edge whose URL is invalid.')
  if (protocol === 'http:' && controlPlaneProtocol !== 'http:' && !isLoopbackHost(url.hostname))
    throw new Error(
      `The server names the edge ${messageLine(url.origin)}, which has no encryption, so your API key is not ` +
        'sent to it.',
    )
  return url.href.replace(/\/+$/, '')
}
