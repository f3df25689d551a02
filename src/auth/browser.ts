// What is known of whoever asks, and what better-auth is told of it: nothing else that a client sent goes on to it.

export interface Browser {
  cookie: string
  address: string
  agent: string
}

/** The address comes in a header of ours; none that a client sends is looked at. */
export const ADDRESS_HEADER = 'x-adit-client-address'

export const headersOf = ({ cookie, address, agent }: Browser) =>
  new Headers({ cookie, 'user-agent': agent, [ADDRESS_HEADER]: address })

/** Those cookies of a header whose names match. */
export const cookiesNamed = (cookie: string, name: RegExp): string =>
  cookie
    .split(/; */)
    .filter((one) => name.test(one.split('=', 1)[0] as string))
    .join('; ')
