// The parts of a request that authentication uses. better-auth sees nothing else of what a client sent.

export interface Browser {
  cookie: string
  address: string
  agent: string
}

/** Internal header for the client address; headers of the client are not used for it. */
export const ADDRESS_HEADER = 'x-adit-client-address'

export const headersOf = ({ cookie, address, agent }: Browser) =>
  new Headers({ cookie, 'user-agent': agent, [ADDRESS_HEADER]: address })

/** The cookies of a header whose names match. */
export const cookiesNamed = (cookie: string, name: RegExp): string =>
  cookie
    .split(/; */)
    .filter((one) => name.test(one.split('=', 1)[0] as string))
    .join('; ')
