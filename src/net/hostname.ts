// One label of a host name, as it is written where host names are compared.
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

export const isDnsLabel = (text: string) => LABEL.test(text)
