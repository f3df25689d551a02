// The programs of this user that record requests, `adit tunnel --inspect`, and their API.
import {
  API,
  type ApiError,
  type Exchange,
  type ExchangeList,
  type ExchangeSummary,
} from '../../inspector/api.ts'
import { callLocal, type LocalResponse } from '../../inspector/local/client.ts'
import { findSockets, type LocalSocket } from '../../inspector/local/socket-folder.ts'
import { inspectorFolder } from '../../server/config/environment.ts'
import { CommandError } from '../errors.ts'

type Method = Parameters<typeof callLocal>[1]

/** Filters and other parameters; those that are undefined are left out. */
export type Query = Readonly<Record<string, string | undefined>>

/** One program. */
export interface Recorder {
  call<T>(method: Method, path: string, input?: object): Promise<T>
  read(path: string): Promise<Buffer>
}

/** `signal` aborts calls. */
export async function findRecorders(signal?: AbortSignal): Promise<Recorder[]> {
  const sockets = await findSockets(inspectorFolder()).catch((error: Error) => {
    throw new CommandError('inspector', error.message)
  })
  if (sockets.length === 0)
    throw new CommandError(
      'not_recording',
      'No tunnel of yours records requests on this machine. Open one with --inspect, e.g. `adit tunnel 3000 --inspect`.',
    )
  return sockets.map((socket) => open(socket, signal))
}

const open = (socket: LocalSocket, signal: AbortSignal | undefined): Recorder => ({
  async call(method, path, input) {
    return JSON.parse(String((await request(socket, method, path, input, signal)).body))
  },
  read: async (path) => (await request(socket, 'GET', path, undefined, signal)).body,
})

async function request(
  socket: LocalSocket,
  method: Method,
  path: string,
  input?: object,
  signal?: AbortSignal,
): Promise<LocalResponse> {
  const response = await callLocal(socket, method, path, input, signal).catch((error: Error) => {
    throw new CommandError('inspector', `The tunnel that records requests does not respond: ${error.message}`)
  })
  if (response.status < 400) return response
  const { error, message } = JSON.parse(String(response.body)) as ApiError
  throw new CommandError(error, message)
}

export function withQuery(path: string, query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value)
  return `${path}?${params}`
}

/** The exchanges of all programs, newest first. */
export async function listExchanges(query: Query): Promise<ExchangeSummary[]> {
  const path = withQuery(API.requests, query)
  const lists = await Promise.all((await findRecorders()).map((each) => each.call<ExchangeList>('GET', path)))
  return lists
    .flatMap(({ requests }) => requests)
    .sort((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt))
}

/** The program that has the exchange. Without an id, the latest of all. */
export async function findExchange(id: string | undefined, query: Query = {}) {
  const [latest] = id === undefined ? await listExchanges({ limit: '1' }) : []
  const wanted = id ?? latest?.id
  if (wanted !== undefined)
    for (const recorder of await findRecorders()) {
      const path = withQuery(API.request(encodeURIComponent(wanted)), query)
      const exchange = await recorder.call<Exchange>('GET', path).catch((error: CommandError) => {
        if (error.code !== 'not_found') throw error
      })
      if (exchange) return { recorder, exchange }
    }
  throw new CommandError(
    'not_found',
    id === undefined
      ? 'No requests are recorded yet.'
      : `There is no request ${id}. Run \`adit requests list\`; only the last ones are kept.`,
  )
}
