// A tunnel edge, on one port: visitors come to the host names of open tunnels, and the other ends of tunnels to the paths
// under /.adit/.
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Meter, Verifier } from '../../edge-sdk/index.ts'
import { headersError } from '../header-limits.ts'
import { OWN_PATHS } from '../protocol.ts'
import { mayUpgrade } from '../proxy.ts'
import { NO_TARGET, parseTarget, sendError, sendRawError } from '../responses.ts'
import { createAdmission } from './admission.ts'
import { type ClientAddressesOptions, createClientAddresses } from './client-address.ts'
import { guardConnections } from './connection-guard.ts'
import { createControlApi } from './control-api.ts'
import { createIngress } from './ingress.ts'
import { createRegistry, type RegistryOptions } from './registry.ts'

const HEADERS_WITHIN_MS = 20_000
const IDLE_WITHIN_MS = 65_000
const PROBE_AFTER_MS = 15_000
const STOP_WITHIN_MS = 5_000
const LOOK_EVERY_MS = 20
const VERIFY_AGAIN_MS = 1_000

export interface EdgeOptions extends Pick<RegistryOptions, 'onOpened' | 'onClosed'>, ClientAddressesOptions {
  readonly host: string
  readonly port: number
  /** How visitors reach it; undefined means where it listens. */
  readonly publicly: { scheme: 'http' | 'https'; port: number | undefined } | undefined
  /** Where stock pipenet clients may connect, if anywhere. */
  readonly pipenetPort: number | undefined
  /** Given what to do when a key is revoked, and when revocations may have been missed. */
  startVerifier(on: { onRevoked(keyId: string): void; onReset(): void }): Verifier
  /** Where there is nobody to report to, nothing is. */
  readonly meter: Meter | undefined
}

export interface RunningEdge {
  /** Where it listens. */
  readonly url: string
  stop(): Promise<void>
}

export async function startEdge(options: EdgeOptions): Promise<RunningEdge> {
  const { host, meter, pipenetPort } = options
  const tunnels = createRegistry(options)
  const verifier = options.startVerifier({
    onRevoked: (keyId) => tunnels.closeOfKey(keyId, 'revoked'),
    onReset: () => void verifyAgain(),
  })

  /** Until it is known. Meanwhile what is open stays open: the control plane may be away. */
  async function verifyAgain(): Promise<void> {
    const verdicts = await Promise.all(
      tunnels.holders().map(async ({ key, keyId }) => {
        const verdict = await verifier.verify(key).catch(() => undefined)
        if (verdict?.valid === false) tunnels.closeOfKey(keyId, 'revoked')
        return verdict
      }),
    )
    if (verdicts.includes(undefined)) setTimeout(verifyAgain, VERIFY_AGAIN_MS).unref()
  }

  const server = createServer({
    headersTimeout: HEADERS_WITHIN_MS,
    keepAliveTimeout: IDLE_WITHIN_MS,
    // Somebody may send something large over a slow line.
    requestTimeout: 0,
    // A client that is gone without a word is noticed, also where nothing is sent.
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
    shouldUpgradeCallback: mayUpgrade,
    // Refused by our own handler, in turn; Node would answer before the requests ahead of it.
    requireHostHeader: false,
  })
  // headersError limits the count. Past a limit here, Node drops headers, which may frame the body, or closes.
  server.maxHeadersCount = 0
  const clients = createClientAddresses(options)
  const listeningPort = () => (server.address() as AddressInfo).port
  const visitors = createIngress({ tunnels, clients, scheme: options.publicly?.scheme ?? 'http' })
  const calls = createControlApi({
    tunnels,
    pipenetPort,
    openTunnel: createAdmission({ verifier, tunnels, meter }),
    urlOf(host) {
      const { scheme, port } = options.publicly ?? { scheme: 'http', port: listeningPort() }
      return `${scheme}://${host}${port === undefined ? '' : `:${port}`}`
    },
  })

  const guard = guardConnections(server, {
    clients,
    onRequest(request, response) {
      const tooMany = headersError(request)
      const place = parseTarget(request)
      if (tooMany) sendError(response, 431, tooMany)
      else if (!place) sendError(response, 400, NO_TARGET)
      else if (place.path.startsWith(OWN_PATHS)) calls.answer(place.path, request, response)
      else visitors.serve(place.host, request, response)
    },
    onUpgrade(request, connection, early) {
      const { socket } = connection
      const tooMany = headersError(request)
      const place = parseTarget(request)
      if (tooMany) sendRawError(socket, 431, tooMany)
      else if (!place) sendRawError(socket, 400, NO_TARGET)
      // Asked before by newer Nodes, which then hand it on as a request.
      else if (!mayUpgrade(request)) sendRawError(socket, 400, 'A request with a body cannot be upgraded.')
      else if (place.path.startsWith(OWN_PATHS)) calls.connect(place.path, request, connection, early)
      else visitors.serveUpgrade(place.host, request, socket, early)
    },
  })

  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(options.port, host, resolve)
    })
    if (pipenetPort !== undefined) {
      // pipenet would say nothing where it is not.
      await requireFree(pipenetPort, host)
      await tunnels.door.listen(pipenetPort, host)
    }
  } catch (error) {
    server.close()
    verifier.close()
    await meter?.stop()
    throw error
  }

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listeningPort()}`,
    async stop() {
      // Nobody new is let in, and requests under way have a while to be answered.
      server.close()
      const patience = performance.now() + STOP_WITHIN_MS
      while (guard.busy() > 0 && performance.now() < patience) await sleep(LOOK_EVERY_MS)
      verifier.close()
      tunnels.closeAll()
      if (pipenetPort !== undefined) tunnels.door.close()
      server.closeAllConnections()
      await meter?.stop()
    },
  }
}

const requireFree = (port: number, host: string) =>
  new Promise<void>((resolve, reject) => {
    const probe = createNetServer()
    probe.once('error', reject)
    probe.listen(port, host, () => probe.close(() => resolve()))
  })
