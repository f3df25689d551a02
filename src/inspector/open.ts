// Composition root of the inspector: the recorder and the API over what it has recorded. Everything is in the
// memory of this program, and gone when it ends.
import type { Socket } from 'node:net'
import type { ConnectionObserver } from '../tunnel-client/local-server.ts'
import { HeaderMask } from './display/mask.ts'
import { listenForUser } from './local/socket-folder.ts'
import { Recorder } from './recording/recorder.ts'
import { Replayer } from './replay/replayer.ts'
import { createLocalServer, createPageServer, listenForPage } from './server/listeners.ts'
import { LiveEventStreams } from './server/live-events.ts'
import { hasPage, type PageFiles } from './server/page.ts'
import type { RouteContext } from './server/routes.ts'
import { Sessions } from './server/sessions.ts'
import type { RecordedTunnel } from './store/exchange.ts'
import { ExchangeStore } from './store/exchange-store.ts'

interface InspectorOptions {
  /** The version of this program. */
  readonly version: string
  /** Starts this program again, for the page. */
  readonly command?: string
  /** Names of headers that are masked, besides those that always are. */
  readonly maskHeaders: readonly string[]
  /** The files of the page; without them no port is opened. */
  readonly files?: PageFiles
  /** The folder for sockets; it exists. */
  readonly socketFolder: string
}

export interface InspectedTunnel {
  readonly observer: ConnectionObserver
  /** Call it whenever the tunnel was opened. */
  setUrl(name: string, url: string): void
}

export interface Inspector {
  /** A link for a browser, which works once; undefined without a page. */
  createLink(): string | undefined
  /** `target`: its URL. `dial` opens a connection to it. */
  inspect(name: string, target: string, dial: () => Promise<Socket>): InspectedTunnel
  close(): void
}

export async function openInspector(options: InspectorOptions): Promise<Inspector> {
  const store = new ExchangeStore()
  const recorder = new Recorder(store)
  const replayer = new Replayer(store)
  const sessions = new Sessions()
  const mask = new HeaderMask(options.maskHeaders)
  let port: number | undefined
  const context: RouteContext = {
    version: options.version,
    ...(options.command !== undefined && { command: options.command }),
    store,
    replayer,
    sessions,
    mask,
    events: new LiveEventStreams(store, mask),
    createLink: () =>
      port === undefined ? undefined : `http://127.0.0.1:${port}/#token=${sessions.createToken()}`,
  }
  const local = createLocalServer(context)
  const removeSocket = await listenForUser(local, options.socketFolder)
  const { files } = options
  const pages = files && hasPage(files) ? createPageServer(context, files) : undefined
  if (pages) port = await listenForPage(pages)
  return {
    createLink: context.createLink,
    inspect(name, target, dial) {
      const tunnel: RecordedTunnel = { name, url: '', target }
      store.addTunnel(tunnel)
      replayer.addTarget(tunnel, dial)
      return {
        observer: recorder.observer(tunnel),
        setUrl: (name, url) => store.setUrl(tunnel, name, url),
      }
    },
    close() {
      removeSocket()
      replayer.close()
      for (const server of [pages, local]) {
        server?.close()
        server?.closeAllConnections()
      }
    },
  }
}
