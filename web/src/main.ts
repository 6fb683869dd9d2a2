import "./page.css";
import { mount } from "svelte";
import Page from "./Page.svelte";

// index.html shows the header and the field at once; what was typed there meanwhile is looked for.
const target = document.getElementById("page")!;
const typed = target.querySelector("input")!.value;
if (typed) {
  history.replaceState(null, "", `#/search?q=${encodeURIComponent(typed)}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
target.replaceChildren();
mount(Page, { target });
