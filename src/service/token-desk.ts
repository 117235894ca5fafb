// The token of a call, and what becomes of the call when there is none. Called by call.ts before each exchange and after a 401; knows the gate
// of the service, which counts each try to get a token that failed, once. Never puts a token into an error.
import type { EventLog } from "../core/event-log.ts";
import { type Gate, isHold, type Pass, unsaid } from "../core/gate.ts";
import type { CallFailure } from "./call-failure.ts";
import { TokenError, type TokenSource } from "./token.ts";

/** Who wants a token. */
export interface TokenWish {
  readonly isRead: boolean;
  readonly subject: string;
  /** Makes the errors of the call. */
  readonly failure: CallFailure;
  readonly signal: AbortSignal;
  /** The place that the call has at the gate already: given back where there is no token. */
  readonly pass: Pass | undefined;
}

/** What the desk is made of. */
export interface TokenDeskParts {
  readonly token: TokenSource;
  readonly gate: Gate | undefined;
  /** Gets `token.unusable`. */
  readonly log: EventLog;
}

/** Gives tokens to the calls of one service. */
export class TokenDesk {
  readonly #parts: TokenDeskParts;
  /** A source that rests gives the same failure to all who ask meanwhile. */
  readonly #counted = new WeakSet<TokenError>();

  constructor(parts: TokenDeskParts) {
    this.#parts = parts;
  }

  /** The token to send now. @throws ServiceError of kind `unreachable`, `unauthorized`, `throttled` (held back) or `cancelled`. */
  async get(wish: TokenWish): Promise<string> {
    try {
      return await this.#parts.token.get(wish.signal);
    } catch (error) {
      throw await this.#judged(this.#unusable(wish, error), wish);
    }
  }

  /** A token in place of one that the service refused with this status. @throws ServiceError of kind `unreachable`, `unauthorized` or `cancelled`. */
  async renew(
    wish: TokenWish,
    refused: { readonly token: string; readonly status: number | undefined },
  ): Promise<string> {
    try {
      return await this.#parts.token.renew(refused.token, wish.signal);
    } catch (error) {
      throw wish.failure.noToken(this.#unusable(wish, error), refused.status);
    }
  }

  #unusable({ signal, failure }: TokenWish, error: unknown): TokenError {
    if (signal.aborted) throw failure.cancelled("no");
    if (!(error instanceof TokenError)) throw error;
    this.#parts.log.warn("token.unusable", { message: error.message });
    return error;
  }

  /**
   * A service that there is no token for is of no use to any request: the gate counts each try to get one, or holds the call back like one to
   * a service that is down. Whoever only hears of a try that was counted waits until the source is asked again.
   */
  async #judged(error: TokenError, { isRead, subject, failure, pass }: TokenWish) {
    const { gate, token } = this.#parts;
    const waitMs = token.restsForMs ?? 0;
    if (gate !== undefined && waitMs > 0 && this.#counted.has(error)) {
      await pass?.leave(unsaid);
      return failure.held({ heldBy: "token", waitMs });
    }
    // Before the gate answers: those who share the failure ask it at the same time.
    this.#counted.add(error);
    const answer = pass ?? (await gate?.enter({ isRead, subject }));
    if (answer !== undefined && isHold(answer)) {
      this.#counted.delete(error);
      return failure.held(answer);
    }
    const noToken = failure.noToken(error, undefined);
    await answer?.leave(noToken);
    return noToken;
  }
}
