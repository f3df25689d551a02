// Calls the API of the programs of this user that record requests.
import { request as send } from 'node:http'
import type { LocalSocket } from './socket-folder.ts'

const TIMEOUT_MS = 90_000
const RESPONSE_BYTES_MAX = 512 * 1024 * 1024

export interface LocalResponse {
  readonly status: number
  readonly body: Buffer
}

export function callLocal(
  { address }: LocalSocket,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  input?: object,
  signal?: AbortSignal,
): Promise<LocalResponse> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const options = { socketPath: address, method, path, headers, timeout: TIMEOUT_MS }
    const request = send({ ...options, ...(signal && { signal }) })
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > RESPONSE_BYTES_MAX) request.destroy(new Error('The response is too large.'))
        else chunks.push(chunk)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error('The program does not respond.')))
    request.on('error', reject)
    request.end(input && JSON.stringify(input))
  })
}
