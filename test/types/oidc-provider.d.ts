// The little of oidc-provider that the tests use; its types come with a web framework's, which nothing here
// needs.
declare module 'oidc-provider' {
  import type { Server } from 'node:http'

  interface Account {
    accountId: string
    claims: () => Record<string, unknown>
  }

  export default class Provider {
    constructor(
      issuer: string,
      configuration: { findAccount: (context: unknown, id: string) => Account; [setting: string]: unknown },
    )
    listen(port: number, host: string): Server
  }
}
