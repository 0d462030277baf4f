//! Syntax that we do not run, found before anything else can stumble over it.

use oxc_ast::ast;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

use crate::fault::{Fault, Page};

/// Everything in a file that is not supported.
pub(super) fn find(program: &ast::Program<'_>, page: Page<'_>) -> Vec<Fault> {
    let mut finder = Finder { page, faults: Vec::new() };
    finder.visit_program(program);
    finder.faults
}

struct Finder<'p> {
    page: Page<'p>,
    faults: Vec<Fault>,
}

impl Finder<'_> {
    fn refuse(&mut self, span: Span, what: &str, help: &str) {
        let message = format!("{what} not supported");
        self.faults.push(self.page.fault("ATM708", span, message).with_help(help));
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_decorator(&mut self, decorator: &ast::Decorator<'a>) {
        self.refuse(decorator.span, "decorators are", "call the function on the class instead");
    }

    fn visit_accessor_property(&mut self, property: &ast::AccessorProperty<'a>) {
        let help = "write a private field with `get` and `set`";
        self.refuse(property.span, "`accessor` fields are", help);
        walk::walk_accessor_property(self, property);
    }

    fn visit_ts_import_equals_declaration(&mut self, import: &ast::TSImportEqualsDeclaration<'a>) {
        // `import x = Name.space` only gives something of this file another name.
        if let ast::TSModuleReference::ExternalModuleReference(_) = &import.module_reference {
            let help = format!("write `import {} from \"…\"`", import.id.name);
            self.refuse(import.span, "`import … = require(…)` is", &help);
        }
    }

    fn visit_ts_export_assignment(&mut self, export: &ast::TSExportAssignment<'a>) {
        self.refuse(export.span, "`export =` is", "write `export default …`");
    }

    fn visit_jsx_element(&mut self, element: &ast::JSXElement<'a>) {
        let help = "there is nothing to draw in a workflow; build text with templates";
        self.refuse(element.opening_element.span(), "JSX is", help);
    }

    fn visit_jsx_fragment(&mut self, fragment: &ast::JSXFragment<'a>) {
        let help = "there is nothing to draw in a workflow; build text with templates";
        self.refuse(fragment.opening_fragment.span, "JSX is", help);
    }
}
