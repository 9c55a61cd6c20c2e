/** Text of others on the user's screen: it is shown, and steers nothing. */

/** Controls, and what turns text round or hides in it. Not what breaks lines or makes an emoji. */
const HIDDEN = /(?!\t|\n|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** The text with all of these as escapes, as the engine's `printable` writes them. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (sign) => {
    const code = sign.codePointAt(0) ?? 0;
    if (code < 256) return `\\x${code.toString(16).padStart(2, "0")}`;
    return Array.from({ length: sign.length }, (_, at) => {
      return `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`;
    }).join("");
  });
}
