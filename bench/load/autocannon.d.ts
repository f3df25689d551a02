// Types for the part of autocannon that is used here. The request iterator is internal: setting its list
// avoids building every request again for each connection and run.
declare module 'autocannon' {
  interface Prepared {
    readonly requestBuffer: Buffer
  }
  interface Client {
    requestIterator: { requests: Prepared[]; currentRequest: Prepared; currentRequestIndex: number }
  }
  interface Options {
    url: string
    connections: number
    duration?: number
    amount?: number
    sampleInt: number
    timeout: number
    setupClient(client: Client): void
    verifyBody?(body: string): boolean
    expectBody?: string
  }
  interface Result {
    errors: number
    timeouts: number
    mismatches: number
    non2xx: number
    latency: { p50: number; p99: number }
  }
  interface Tracker {
    on(event: 'response', listener: () => void): this
    on(event: 'reqError', listener: (error: Error) => void): this
  }
  export default function autocannon(
    options: Options,
    done: (error: Error | null, result: Result) => void,
  ): Tracker
}
